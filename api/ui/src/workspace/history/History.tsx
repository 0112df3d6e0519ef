// The history of an entity, or of everything in a project: each change with its author, and the undo of each set of
// changes.
import { useCallback, useEffect } from "react";

import type { Page } from "../../client/server";
import { type Change, type EntityKind, readChanges, undoChangeSet } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Moment } from "../../messages/SentAt";
import { Rest } from "../controls/Rest";
import { news } from "../news";
import { useListed } from "../useListed";
import { ChangeText } from "./ChangeText";
import { inSets, projectIn } from "./described";
import { RunLink } from "./RunLink";
import { UndoButton } from "./UndoButton";
import "./History.css";

export function EntityHistory({ kind, id }: { kind: EntityKind; id: string }) {
  const read = useCallback((cursor: string | undefined) => readChanges({ kind, id }, { cursor }), [kind, id]);
  return <History read={read} />;
}

export function ProjectHistory({ projectId }: { projectId: string }) {
  const read = useCallback((cursor: string | undefined) => readProjectChanges(projectId, cursor), [projectId]);
  return <History read={read} />;
}

/** Of a workspace with other projects, one read looks at so many pages. */
const PAGES = 10;

async function readProjectChanges(projectId: string, cursor: string | undefined): Promise<Page<Change>> {
  const items: Change[] = [];
  let next: string | null | undefined = cursor;
  for (let page = 0; page < PAGES && next !== null; page += 1) {
    const read: Page<Change> = await readChanges(undefined, { cursor: next });
    items.push(...read.items.filter((change) => projectIn(change) === projectId));
    next = read.next;
    if (items.length >= 20) break;
  }
  return { items, next: next ?? null };
}

function History({ read }: { read(cursor: string | undefined): Promise<Page<Change>> }) {
  const changes = useListed<Change>(read);
  const { readAgain } = changes;
  useEffect(() => news.subscribe((made) => made && readAgain()), [readAgain]);
  return (
    <div className="history">
      <ol role="list">
        {inSets(changes.items).map(({ id, changes }) => (
          <ChangeSet key={changes[0]!.id} id={id} changes={changes} />
        ))}
      </ol>
      <Rest reading={changes}>
        <p className="rest">{texts.history.none}</p>
      </Rest>
    </div>
  );
}

/** A set of many changes shows so many of them. */
const SHOWN = 12;

function ChangeSet({ id, changes }: { id: string; changes: Change[] }) {
  const first = changes[0]!;
  const perform = useCallback((how: { force: boolean }) => undoChangeSet(id, how), [id]);
  return (
    <li className="change-set">
      <div className="change-head">
        <span>{first.run_id ? texts.history.byAgent : texts.history.byYou}</span>
        <Moment at={first.created_at} />
        {first.run_id && <RunLink runId={first.run_id} />}
        <UndoButton label={texts.undo.action} perform={perform} />
      </div>
      <ul role="list">
        {changes.slice(0, SHOWN).map((change) => (
          <li key={change.id}>
            <ChangeText change={change} />
          </li>
        ))}
        {changes.length > SHOWN && <li className="change-more">… {changes.length - SHOWN}</li>}
      </ul>
    </li>
  );
}
