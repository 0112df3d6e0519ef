// The page of memories: the reader sees, finds, changes, exports and deletes what agents remember.
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useState } from "react";

import { Changes } from "../changes";
import { deleteAllMemories, deleteMemory, exportMemories, type Memory, readMemories } from "../client/memories";
import { save } from "../client/save";
import { words } from "../i18n";
import { texts } from "../i18n/memories";
import { refocus } from "../refocus";
import { Shown } from "../shown";
import { pageTitle } from "../shell/chat/title";
import { Icon } from "../shell/controls/icons";
import { showToast } from "../shell/controls/toasts";
import { useShown } from "../useShown";
import { visit } from "../visit";
import { MEMORIES_PATH, memoriesIn } from "./address";
import { Confirmation } from "./Confirmation";
import { found } from "./found";
import { MemoryItem } from "./MemoryItem";
import "../shell/controls/controls.css";
import "./memories.css";

type Props = {
  isListShown: boolean;
  onShowList(): void;
  /** The number of conversations that wait for the reader. */
  waiting: number;
};

export function MemoriesPage({ isListShown, onShowList, waiting }: Props) {
  const { memories, isLost, change, readAgain } = useMemories();
  const only = useOnly();
  const [query, setQuery] = useState("");
  const [deleting, setDeleting] = useState<Memory | "all">();
  useEffect(() => {
    document.title = pageTitle(texts.title, false, waiting);
  }, [waiting]);

  const confirm = async () => {
    setDeleting(undefined);
    if (deleting === undefined) return;
    try {
      await (deleting === "all" ? deleteAllMemories() : deleteMemory(deleting.id));
      change((before) => (deleting === "all" ? [] : before.filter(({ id }) => id !== deleting.id)));
    } catch {
      showToast(texts.notDeleted);
      readAgain();
    }
    refocus(() => document.getElementById("chat"));
  };
  const download = () => exportMemories().then((bytes) => save(bytes, "memories.ndjson")).catch(() => showToast(texts.notExported));

  const shown = found(memories ?? [], query, only);
  return (
    <main className="chat memories-page" id="chat" tabIndex={-1}>
      <header className="head">
        {!isListShown && (
          <button type="button" className="icon-button" aria-label={words.shell.list.show} title={words.shell.list.show} onClick={onShowList}>
            <Icon name="list" />
          </button>
        )}
      </header>
      <div className="memories-scroll">
        <div className="memories-column">
          <h1>{texts.title}</h1>
          <p className="memories-about">{texts.about}</p>
          {memories && memories.length > 0 && (
            <div className="memories-bar">
              <input className="field" type="search" dir="auto" aria-label={texts.search} placeholder={texts.search} value={query} onChange={(event) => setQuery(event.target.value)} />
              <button type="button" className="button" onClick={() => void download()}>
                <Icon name="save" />
                {texts.export}
              </button>
              <button type="button" className="button" onClick={() => setDeleting("all")}>
                <Icon name="delete" />
                {texts.deleteAll}
              </button>
            </div>
          )}
          {only && (
            <p className="memories-only">
              {shown.length > 0 || query !== "" || !memories ? texts.onlyUsed(only.size) : texts.gone}{" "}
              <button type="button" className="button" onClick={() => visit(MEMORIES_PATH)}>
                {texts.showAll}
              </button>
            </p>
          )}
          <p className="unseen" role="status">
            {memories && texts.count(shown.length)}
          </p>
          <ul role="list" className="memories">
            {shown.map((memory) => (
              <MemoryItem
                key={memory.id}
                memory={memory}
                onChanged={(changed) => change((before) => before.map((other) => (other.id === changed.id ? changed : other)))}
                onDelete={() => setDeleting(memory)}
              />
            ))}
          </ul>
          {isLost ? (
            <div className="memories-rest" role="status">
              <p>{texts.unreachable}</p>
              <button type="button" className="button" onClick={readAgain}>
                {words.shell.retry}
              </button>
            </div>
          ) : !memories ? (
            <div className="memories-rest" role="img" aria-label={texts.loading} />
          ) : (
            shown.length === 0 && !(only && query === "") && <p className="memories-rest">{memories.length === 0 ? texts.none : texts.nothing}</p>
          )}
        </div>
      </div>
      {deleting && (
        <Confirmation
          question={deleting === "all" ? texts.deleteAllQuestion : texts.deleteQuestion}
          why={deleting === "all" ? texts.allForEver : texts.forEver}
          action={deleting === "all" ? texts.deleteAll : texts.delete}
          onConfirm={() => void confirm()}
          onClose={() => setDeleting(undefined)}
        />
      )}
    </main>
  );
}

/** Reads all memories: once, and each time that the reader returns. */
function useMemories() {
  const [changes] = useState(() => new Changes<(memories: Memory[]) => Memory[]>());
  const [shown] = useState(() => new Shown<Memory[] | undefined, (memories: Memory[]) => Memory[]>(undefined, changes, (memories, change) => memories && change(memories)));
  const memories = useShown(shown);
  const [isLost, setIsLost] = useState(false);
  const readAgain = useCallback(() => {
    shown.read(readMemories, (_, read) => read).then(
      () => setIsLost(false),
      () => setIsLost(true),
    );
  }, [shown]);
  useEffect(() => {
    readAgain();
    return onWake(readAgain);
  }, [readAgain]);
  return { memories, isLost, change: (how: (memories: Memory[]) => Memory[]) => changes.tell(how), readAgain };
}

/** Returns the memories that the address names. */
function useOnly(): ReadonlySet<string> | undefined {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onPop = () => setHash(location.hash);
    window.addEventListener("popstate", onPop);
    return () => window.removeEventListener("popstate", onPop);
  }, []);
  return memoriesIn(hash);
}
