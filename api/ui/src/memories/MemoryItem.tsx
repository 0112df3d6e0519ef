// One memory: its text, where it comes from, and its actions.
import { Problem } from "holdfast-client/problem";
import { type FormEvent, useId, useState } from "react";

import { changeMemory, type Memory, type MemoryVersion, readMemoryVersions } from "../client/memories";
import { locale } from "../i18n";
import { texts } from "../i18n/memories";
import { isComposing } from "../isComposing";
import { linkOf } from "../shell/address";
import { Icon } from "../shell/controls/icons";
import { showToast } from "../shell/controls/toasts";
import { follow } from "../visit";
import { keepUnsaved, type Unsaved, unsavedOf } from "../workspace/text/unsent";
import { lastDay } from "./found";

type Props = { memory: Memory; onChanged(memory: Memory): void; onDelete(): void };

const day = (time: string) => new Date(time).toLocaleDateString(locale, { dateStyle: "medium" });

export function MemoryItem({ memory, onChanged, onDelete }: Props) {
  /** An editor that the reader left open is open again, and takes no focus. */
  const [editing, setEditing] = useState<"no" | "again" | "begun">(() => (unsavedOf(nameOf(memory)) ? "again" : "no"));
  const { conversation_id, message_id } = memory.source;
  const path = conversation_id && linkOf(conversation_id, message_id);
  return (
    <li className="memory">
      <p className="memory-text" dir="auto">
        {memory.text}
      </p>
      {editing !== "no" ? (
        <Editor memory={memory} isReopened={editing === "again"} onChanged={onChanged} onDone={() => setEditing("no")} />
      ) : (
        <>
          <p className="memory-facts">
            <time dateTime={memory.updated_at}>{day(memory.updated_at)}</time>
            <span>{texts.of(memory.agent)}</span>
            {memory.scope === "user" && <span>{texts.forAll}</span>}
            {memory.writer === "user" && <span>{texts.edited}</span>}
            {memory.expires_at && <span>{texts.until(day(`${lastDay(memory.expires_at)}T12:00:00`))}</span>}
            {path && (
              <a href={path} onClick={(event) => follow(event, path)}>
                {texts.source}
              </a>
            )}
          </p>
          <div className="memory-actions">
            <button type="button" className="icon-button" aria-label={texts.edit} title={texts.edit} onClick={() => setEditing("begun")}>
              <Icon name="rename" />
            </button>
            <button type="button" className="icon-button" aria-label={texts.delete} title={texts.delete} onClick={onDelete}>
              <Icon name="delete" />
            </button>
          </div>
          {memory.version > 1 && <Versions key={memory.version} memory={memory} />}
        </>
      )}
    </li>
  );
}

/** The name of its unsaved text. */
const nameOf = ({ id }: Memory) => `memory/${id}`;

function Editor({ memory, isReopened, onChanged, onDone }: { memory: Memory; isReopened: boolean; onChanged(memory: Memory): void; onDone(): void }) {
  /** The text, with the version that its writer has read. */
  const [unsaved, setUnsaved] = useState(() => unsavedOf(nameOf(memory)) ?? { text: memory.text, base: memory.text, version: memory.version });
  const { text } = unsaved;
  const write = (change: Partial<Unsaved>) => {
    const next = { ...unsaved, ...change };
    setUnsaved(next);
    keepUnsaved(nameOf(memory), next.text === next.base ? undefined : next);
  };
  const end = () => {
    keepUnsaved(nameOf(memory), undefined);
    onDone();
  };
  const [until, setUntil] = useState(lastDay(memory.expires_at));
  const [isBusy, setIsBusy] = useState(false);
  const [isStale, setIsStale] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (isBusy || text.trim() === "") return;
    setIsBusy(true);
    try {
      const expiry = until === lastDay(memory.expires_at) ? {} : { expires_at: until === "" ? null : until };
      onChanged(await changeMemory(memory.id, { version: unsaved.version, text, ...expiry }));
      end();
    } catch (error) {
      setIsBusy(false);
      const code = error instanceof Problem ? error.code : undefined;
      if (code !== "version_conflict") return void showToast(code === "invalid_memory" ? (error as Problem).message : texts.notChanged);
      setIsStale(true);
      const versions = await readMemoryVersions(memory.id).catch(() => []);
      const newest = versions.at(-1);
      if (newest) write({ base: newest.text, version: newest.version });
      if (newest) onChanged({ ...memory, version: newest.version, text: newest.text, writer: newest.writer, updated_at: newest.written_at });
    }
  };
  return (
    <form className="memory-editor" onSubmit={(event) => void submit(event)} onKeyDown={(event) => event.key === "Escape" && !isComposing(event) && end()}>
      {isStale && (
        <p className="memory-stale" role="alert">
          {texts.conflict}
        </p>
      )}
      <label>
        {texts.text}
        <textarea className="field" dir="auto" rows={3} autoFocus={!isReopened} value={text} onChange={(event) => write({ text: event.target.value })} />
      </label>
      <label>
        {texts.lastDay}
        <input className="field" type="date" max="9999-12-30" value={until} onChange={(event) => setUntil(event.target.value)} />
      </label>
      <div className="memories-actions">
        <button type="submit" className="button" data-main="" aria-disabled={isBusy || text.trim() === ""}>
          {texts.save}
        </button>
        <button type="button" className="button" onClick={end}>
          {texts.cancel}
        </button>
      </div>
    </form>
  );
}

/** The earlier versions, which the page reads when the reader opens them. */
function Versions({ memory }: { memory: Memory }) {
  const name = useId();
  const [isOpen, setIsOpen] = useState(false);
  const [versions, setVersions] = useState<MemoryVersion[]>();
  const toggle = () => {
    setIsOpen(!isOpen);
    if (!versions) readMemoryVersions(memory.id).then((read) => setVersions(read.slice(0, -1).reverse()), () => showToast(texts.unreachable));
  };
  return (
    <div className="memory-versions">
      <button type="button" className="memory-toggle" aria-expanded={isOpen} aria-controls={name} onClick={toggle}>
        <Icon name="down" />
        {texts.versions}
      </button>
      <ol id={name} hidden={!isOpen} role="list">
        {versions?.map((version) => (
          <li key={version.version}>
            <p className="memory-text" dir="auto">
              {version.text}
            </p>
            <p className="memory-facts">
              <time dateTime={version.written_at}>{day(version.written_at)}</time>
              <span>{version.writer === "user" ? texts.byYou : texts.byAgent}</span>
            </p>
          </li>
        ))}
      </ol>
    </div>
  );
}
