// Follows the end of what grows, unless the reader has gone up; then it stays where they are. What changes above is the
// browser's to make up for (`overflow-anchor`).
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** So near to the end, a reader who comes down is taken to be at it: it moves on while they come. */
const NEAR = 120;

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

  /** The reader is led elsewhere, and stays there. */
  const leave = useCallback(() => {
    isFollowing.current = false;
  }, []);

  useLayoutEffect(goToEnd, [goToEnd, lastSaid]);

  useEffect(() => {
    const list = scroller.current;
    if (!list || !content.current) return;
    const endOf = () => list.scrollHeight - list.clientHeight;
    let top = list.scrollTop;
    let end = endOf();
    const settle = (isAtEnd: boolean) => {
      if (isAtEnd) isFollowing.current = true;
      end = endOf();
      setAway(!isFollowing.current && list.scrollTop < end - NEAR);
    };
    const onScroll = () => {
      const moved = list.scrollTop - top;
      top = list.scrollTop;
      // The end moves away by growing too, so only who moves up has gone, however little: a finger must not be fought.
      if (moved < -1) isFollowing.current = false;
      // Who comes down to where the end has just been has come to the end.
      settle(moved > 0 ? top > Math.min(end, endOf()) - NEAR : top > endOf() - 1);
    };
    // The end may run away from a wheel that is turned towards it.
    const onWheel = (event: WheelEvent) => {
      if (event.deltaY > 0 && !isFollowing.current && list.scrollTop + event.deltaY > endOf() - NEAR) goToEnd();
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "End" && event.target === list) goToEnd();
    };
    // What the reader opens or closes is what they want to look at, so it must not be scrolled away.
    const onClick = (event: MouseEvent) => {
      if (!(event.target instanceof Element)) return;
      // Another version comes later, and what follows it may be longer than the page.
      if (event.target.closest('.versions [aria-disabled="false"]')) return leave();
      if (!event.target.closest("[aria-expanded]")) return;
      leave();
      requestAnimationFrame(() => requestAnimationFrame(() => settle(list.scrollTop > endOf() - 1)));
    };
    const onResize = () => {
      if (isFollowing.current) list.scrollTop = list.scrollHeight;
      settle(list.scrollTop > endOf() - 1);
    };
    const observer = new ResizeObserver(onResize);
    observer.observe(list);
    observer.observe(content.current);
    list.addEventListener("scroll", onScroll, { passive: true });
    list.addEventListener("wheel", onWheel, { passive: true });
    list.addEventListener("keydown", onKey);
    list.addEventListener("click", onClick, { capture: true });
    return () => {
      observer.disconnect();
      list.removeEventListener("scroll", onScroll);
      list.removeEventListener("wheel", onWheel);
      list.removeEventListener("keydown", onKey);
      list.removeEventListener("click", onClick, { capture: true });
    };
  }, [scroller, content, goToEnd, leave]);

  return { isAway, goToEnd, leave };
}
