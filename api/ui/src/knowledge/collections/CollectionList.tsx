// The list of collections: the reader creates, opens and deletes them.
import { problemFrom } from "holdfast-client/problem";
import { type FormEvent, useRef, useState } from "react";

import { type Collection, createCollection, deleteCollection, readCollections } from "../../client/knowledge";
import { locale } from "../../i18n";
import { texts } from "../../i18n/knowledge";
import { refocus } from "../../refocus";
import { Icon, Mark } from "../../shell/controls/icons";
import { showToast } from "../../shell/controls/toasts";
import { visit } from "../../visit";
import { dayText } from "../../workspace/dates";
import { useTitle } from "../../workspace/frame";
import { without } from "../../workspace/listed";
import { PageLink } from "../../workspace/PageLink";
import { useListed } from "../../workspace/useListed";
import { collectionPath } from "../paths";
import { ConfirmDeletion } from "../ConfirmDeletion";
import type { Frame } from "../frame";
import { Rest } from "../Rest";
import { Top } from "../Top";
import "../../workspace/projects/ProjectList.css";

const read = (cursor: string | undefined) => readCollections({ cursor });

export function CollectionList({ frame }: { frame: Frame }) {
  const [isCreating, setIsCreating] = useState(false);
  const [unwanted, setUnwanted] = useState<Collection>();
  const collections = useListed<Collection>(read);
  useTitle(texts.title, frame.waiting);

  const remove = async ({ id, name }: Collection) => {
    setUnwanted(undefined);
    try {
      await deleteCollection(id);
      collections.changes.tell((listed) => without(listed, id));
      showToast(texts.collection.deleted(name));
    } catch {
      showToast(texts.collection.notDeleted(name));
    }
    refocus(() => document.getElementById("chat"));
  };

  const isEmpty = collections.items.length === 0 && collections.progress === "idle";
  return (
    <main className="chat workspace" id="chat" tabIndex={-1}>
      <Top frame={frame} isRoot />
      <div className="workspace-scroll">
        <div className="workspace-column">
          <h1>{texts.title}</h1>
          <p className="workspace-about">{texts.collection.about}</p>
          <div className="workspace-bar">
            <button type="button" className="button" data-main={isEmpty ? undefined : ""} aria-expanded={isCreating} onClick={() => setIsCreating(!isCreating)}>
              <Icon name="add" />
              {texts.collection.create}
            </button>
          </div>
          {isCreating && <NewCollection onCancel={() => setIsCreating(false)} />}
          <ul role="list" className="projects">
            {collections.items.map((collection) => (
              <li key={collection.id} className="project-item">
                <div className="project-item-text">
                  <PageLink to={collectionPath(collection.id)} dir="auto">
                    {collection.name}
                  </PageLink>
                  {collection.description && (
                    <p className="project-item-description" dir="auto">
                      {collection.description}
                    </p>
                  )}
                  <p className="project-item-dates">{dayText(collection.created_at, locale)}</p>
                </div>
                <button type="button" className="icon-button collection-delete" aria-label={texts.document.delete(collection.name)} title={texts.collection.deleteIt} onClick={() => setUnwanted(collection)}>
                  <Icon name="delete" />
                </button>
              </li>
            ))}
          </ul>
          <Rest reading={collections}>{!isCreating && <Empty onCreate={() => setIsCreating(true)} />}</Rest>
        </div>
      </div>
      {unwanted && <ConfirmDeletion title={texts.collection.confirm(unwanted.name)} text={texts.collection.confirmText} onConfirm={() => void remove(unwanted)} onClose={() => setUnwanted(undefined)} />}
    </main>
  );
}

function Empty({ onCreate }: { onCreate(): void }) {
  return (
    <div className="projects-empty">
      <Mark />
      <h2>{texts.collection.none}</h2>
      <button type="button" className="button" data-main="" onClick={onCreate}>
        {texts.collection.create}
      </button>
    </div>
  );
}

function NewCollection({ onCancel }: { onCancel(): void }) {
  const [name, setName] = useState("");
  const isBusy = useRef(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() === "" || isBusy.current) return;
    isBusy.current = true;
    try {
      visit(collectionPath((await createCollection({ name: name.trim() })).id));
    } catch (error) {
      const { status, message } = problemFrom(error);
      showToast(status === 403 ? message : texts.collection.notCreated);
    }
    isBusy.current = false;
  };
  return (
    <form className="add" onSubmit={(event) => void submit(event)} onKeyDown={(event) => event.key === "Escape" && onCancel()}>
      <input className="field" dir="auto" autoFocus maxLength={200} aria-label={texts.collection.name} placeholder={texts.collection.name} value={name} onChange={(event) => setName(event.target.value)} />
      <button type="submit" className="button" data-main="" disabled={name.trim() === ""}>
        {texts.collection.createAction}
      </button>
    </form>
  );
}
