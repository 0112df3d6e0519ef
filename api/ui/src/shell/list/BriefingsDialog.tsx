// This dialog lists the reader's briefings; each has a button that opens a conversation about it.
import { Problem } from "holdfast-client/problem";
import { useEffect, useState } from "react";

import { deleteBriefing, readBriefings, talkAboutBriefing, type Briefing } from "../../client/server";
import { words } from "../../i18n";
import { Briefing as Card } from "../../messages/Briefing";
import { Dialog } from "../controls/Dialog";
import { showToast } from "../controls/toasts";
import "../../messages/messages.css";
import "../../messages/parts.css";
import "./BriefingsDialog.css";

type Props = { onTalk(conversationId: string): void; onClose(): void; onChanged(): void };

export function BriefingsDialog({ onTalk, onClose, onChanged }: Props) {
  const [listed, setListed] = useState<{ items: Briefing[]; next: string | null }>();
  const [isLost, setIsLost] = useState(false);
  const [busy, setBusy] = useState<string>();
  const readMore = async (cursor?: string) => {
    try {
      const page = await readBriefings({ cursor });
      setIsLost(false);
      setListed((before) => ({ items: [...(cursor ? (before?.items ?? []) : []), ...page.items], next: page.next }));
    } catch {
      setIsLost(true);
    }
  };
  useEffect(() => void readMore(), []);

  const talk = async ({ id }: Briefing) => {
    if (busy) return;
    setBusy(id);
    try {
      onTalk((await talkAboutBriefing(id)).conversation_id);
    } catch (error) {
      const isWithoutAgent = error instanceof Problem && error.code === "agent_not_found";
      showToast(isWithoutAgent ? words.briefing.noAgent : words.briefing.notBegun);
    } finally {
      setBusy(undefined);
    }
  };
  const remove = async ({ id }: Briefing) => {
    try {
      await deleteBriefing(id);
      setListed((before) => before && { ...before, items: before.items.filter((other) => other.id !== id) });
      onChanged();
    } catch {
      showToast(words.briefing.notDeleted);
    }
  };

  return (
    <Dialog title={words.briefing.list} onClose={onClose}>
      <div className="messages briefings">
        {listed?.items.map((briefing) => (
          <article key={briefing.id} aria-label={briefing.title}>
            <Card briefing={{ ...briefing, briefing_id: briefing.id, priority: briefing.priority ?? undefined }}>
              <div className="card-actions">
                <button type="button" className="button" data-main aria-disabled={busy === briefing.id} onClick={() => void talk(briefing)}>
                  {words.briefing.talk}
                </button>
                <button type="button" className="button" data-plain onClick={() => void remove(briefing)}>
                  {words.briefing.delete}
                </button>
              </div>
            </Card>
          </article>
        ))}
        {listed?.items.length === 0 && <p>{words.briefing.none}</p>}
        {isLost && <p role="status">{words.shell.list.unreachable}</p>}
        {(isLost || listed?.next) && (
          <button type="button" className="button" onClick={() => void readMore(listed?.next ?? undefined)}>
            {isLost ? words.shell.retry : words.briefing.more}
          </button>
        )}
      </div>
    </Dialog>
  );
}
