// Leads the reader to a message, or to the beginning, of a conversation whose earlier messages the page has not read, and
// keeps what the reader sees in its place when these arrive.
import { type RefObject, useEffect, useLayoutEffect, useRef } from "react";

import type { Chat } from "../chat/chat";
import { FAR } from "../chat/earlier";
import { leadTo, type Place, useMarks } from "./sought";

type Box = RefObject<HTMLElement | null>;

export function useEarlier(chat: Chat, scroller: Box, place: Place | undefined, leave: () => void): void {
  const { messages, earlier, readEarlier } = chat;
  const visited = useRef<typeof place>(undefined);
  // The effect runs after every render, because the history arrives later than the address, and a long one gradually.
  useEffect(() => {
    if (!place || visited.current === place) return;
    const message = scroller.current?.querySelector(`[data-id="${CSS.escape(place.messageId)}"]`);
    if (message) {
      visited.current = place;
      leave();
      leadTo(message, scroller.current!, place.words);
    } else if (earlier === "more" && !messages.some(({ id }) => id === place.messageId)) readEarlier(FAR);
  });

  useMarks(scroller, place, messages.some(({ id }) => id === place?.messageId));

  /** Whether the reader goes to the very beginning: by the key for it, until the next other move. */
  const isHoming = useRef(false);
  useEffect(() => {
    const list = scroller.current;
    if (!list) return;
    const onKey = (event: KeyboardEvent) => {
      isHoming.current = event.key === "Home" && event.target === list;
      if (!isHoming.current) return;
      // The browser would glide there, and keep what it passes in its place while messages arrive above.
      event.preventDefault();
      leave();
      list.scrollTop = 0;
    };
    const stop = () => (isHoming.current = false);
    list.addEventListener("keydown", onKey);
    list.addEventListener("wheel", stop, { passive: true });
    list.addEventListener("pointerdown", stop);
    return () => {
      list.removeEventListener("keydown", onKey);
      list.removeEventListener("wheel", stop);
      list.removeEventListener("pointerdown", stop);
    };
  }, [scroller, leave]);
  useEffect(() => {
    if (isHoming.current && earlier === "more") readEarlier(FAR);
  });

  const before = useRef<{ first?: string; height: number }>({ height: 0 });
  // The browser keeps the place by itself, unless the list stands at its very top.
  useLayoutEffect(() => {
    const list = scroller.current;
    const first = messages[0]?.id;
    if (!list || first === before.current.first) return;
    const isPrepended = before.current.first !== undefined && messages.some(({ id }) => id === before.current.first);
    if (isHoming.current) list.scrollTop = 0;
    else if (isPrepended && list.scrollTop === 0) list.scrollTop = list.scrollHeight - before.current.height;
    before.current.first = first;
  }, [messages, scroller]);
  useLayoutEffect(() => {
    before.current.height = scroller.current?.scrollHeight ?? 0;
  });
}
