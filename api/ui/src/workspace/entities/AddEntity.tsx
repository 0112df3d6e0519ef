// A line that adds an entity by its name alone. The writer need not wait for the server before the next name.
import { type FormEvent, useRef, useState } from "react";

import { words } from "../../i18n";
import { texts } from "../../i18n/workspace";
import type { InnerKind } from "../address";
import { add } from "../edits";
import { nameField } from "../kinds";
import { inOrder } from "./inOrder";

/** A name that was not added, until the writer tries again. */
type Failed = { id: number; name: string; again: () => void };

export function AddEntity({ kind, projectId }: { kind: InnerKind; projectId: string }) {
  const [name, setName] = useState("");
  const [failed, setFailed] = useState<Failed[]>([]);
  const [line] = useState(inOrder);
  const newest = useRef(0);
  const put = (wanted: string) =>
    line(async () => {
      if (await add(kind, { project_id: projectId, [nameField(kind)]: wanted })) return;
      const id = ++newest.current;
      const again = () => {
        setFailed((now) => now.filter((other) => other.id !== id));
        put(wanted);
      };
      // The field may have the next name already.
      setFailed((now) => [...now, { id, name: wanted, again }]);
    });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const wanted = name.trim();
    if (wanted === "") return;
    setName("");
    put(wanted);
  };
  const label = texts.list.add[kind];
  return (
    <>
      <form className="add" onSubmit={submit}>
        <input className="field" dir="auto" maxLength={200} placeholder={label} aria-label={label} value={name} onChange={(event) => setName(event.target.value)} />
        {name.trim() !== "" && (
          <button type="submit" className="button">
            {texts.list.addAction}
          </button>
        )}
      </form>
      {failed.map(({ id, name, again }) => (
        <p key={id} className="rest">
          {texts.list.notAddedYet(name)}{" "}
          <button type="button" className="button" onClick={again}>
            {words.shell.retry}
          </button>
        </p>
      ))}
    </>
  );
}
