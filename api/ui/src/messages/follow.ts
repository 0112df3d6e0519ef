// Follows the end of what grows, unless the reader has gone up; then it stays where they are. What changes above is the
// browser's to make up for (`overflow-anchor`).
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** So near to the end, a reader is taken to be at it. */
const NEAR = 48;

type Box = RefObject<HTMLElement | null>;

/** `lastSaid` is the reader's newest message: whoever says something wants to see what becomes of it. */
export function useFollow(scroller: Box, content: Box, lastSaid: string | undefined) {
  const isFollowing = useRef(true);
  const [isAway, setAway] = useState(false);

  const goToEnd = useCallback(() => {
    isFollowing.current = true;
    setAway(false);
    const list = scroller.current;
    if (list) list.scrollTop = list.scrollHeight;
  }, [scroller]);

  useLayoutEffect(goToEnd, [goToEnd, lastSaid]);

  useEffect(() => {
    const list = scroller.current;
    if (!list || !content.current) return;
    let top = list.scrollTop;
    const isAtEnd = () => list.scrollHeight - list.scrollTop - list.clientHeight < NEAR;
    const settle = () => {
      if (isAtEnd()) isFollowing.current = true;
      setAway(!isFollowing.current && !isAtEnd());
    };
    const onScroll = () => {
      // The end also moves away by growing; only who moves up has gone.
      if (list.scrollTop < top - 1 && !isAtEnd()) isFollowing.current = false;
      top = list.scrollTop;
      settle();
    };
    // What the reader opens or closes is what they want to look at, so it must not be scrolled away.
    const onClick = (event: MouseEvent) => {
      if (!(event.target instanceof Element) || !event.target.closest("[aria-expanded]")) return;
      isFollowing.current = false;
      requestAnimationFrame(() => requestAnimationFrame(settle));
    };
    const onResize = () => {
      if (isFollowing.current) list.scrollTop = list.scrollHeight;
      else settle();
    };
    const observer = new ResizeObserver(onResize);
    observer.observe(list);
    observer.observe(content.current);
    list.addEventListener("scroll", onScroll, { passive: true });
    list.addEventListener("click", onClick, { capture: true });
    return () => {
      observer.disconnect();
      list.removeEventListener("scroll", onScroll);
      list.removeEventListener("click", onClick, { capture: true });
    };
  }, [scroller, content]);

  return { isAway, goToEnd };
}
