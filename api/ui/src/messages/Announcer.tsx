// Announces to a screen reader that an answer begins and ends, and nothing in between.
import { useEffect, useRef, useState } from "react";

import type { Chat, Progress } from "../chat/chat";
import { isNotSent } from "../chat/state";
import { words } from "../i18n";
import { announcementOf } from "./announcement";
import { reasonFor } from "./reason";

export function Announcer({ chat }: { chat: Chat }) {
  const before = useRef<Progress>("loading");
  const [announced, setAnnounced] = useState("");
  const status = chat.messages.at(-1)?.metadata?.status;
  useEffect(() => {
    const announcement = announcementOf(before.current, chat.progress, status);
    before.current = chat.progress;
    if (announcement) setAnnounced(words.list[announcement]);
  }, [chat.progress, status]);
  const isHeld = isNotSent(chat);
  useEffect(() => {
    if (isHeld) setAnnounced(words.list.notSent);
  }, [isHeld]);
  useEffect(() => {
    if (chat.problem) setAnnounced(reasonFor(words.trouble, chat.problem));
  }, [chat.problem]);
  return (
    <p className="unseen" role="status">
      {announced}
    </p>
  );
}
