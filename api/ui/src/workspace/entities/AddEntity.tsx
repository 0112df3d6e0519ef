// A line that adds an entity by its name alone.
import { type FormEvent, useRef, useState } from "react";

import { texts } from "../../i18n/workspace";
import type { InnerKind } from "../address";
import { add } from "../edits";
import { nameField } from "../kinds";

export function AddEntity({ kind, projectId }: { kind: InnerKind; projectId: string }) {
  const [name, setName] = useState("");
  const isBusy = useRef(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const wanted = name.trim();
    if (wanted === "" || isBusy.current) return;
    isBusy.current = true;
    setName("");
    const added = await add(kind, { project_id: projectId, [nameField(kind)]: wanted });
    isBusy.current = false;
    // The writer may have begun the next one meanwhile.
    if (!added) setName((now) => (now === "" ? wanted : now));
  };
  const label = texts.list.add[kind];
  return (
    <form className="add" onSubmit={(event) => void submit(event)}>
      <input className="field" dir="auto" maxLength={200} placeholder={label} aria-label={label} value={name} onChange={(event) => setName(event.target.value)} />
      <button type="submit" className="button" disabled={name.trim() === ""}>
        {texts.list.addAction}
      </button>
    </form>
  );
}
