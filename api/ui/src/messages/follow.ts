// Follows the end of a growing list, unless the reader has scrolled up; then it stays there. The browser compensates
// for changes above (`overflow-anchor`).
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** A reader who scrolls down this near to the end counts as at it, because the end moves on meanwhile. */
const NEAR = 120;

/** A press on these selects no text, and the list keeps them under the pointer. */
const PRESSED = "a, button, input, label, select, textarea";

type Box = RefObject<HTMLElement | null>;

export function useFollow(scroller: Box, content: Box) {
  const isFollowing = useRef(true);
  /** Whether the reader selects text, or has selected it: until the reader drops the selection, the text stays in sight. */
  const isHeld = useRef(false);
  /** Where the list was when the reader or the page last moved it. */
  const top = useRef(0);
  const [isAway, setAway] = useState(false);

  const moveToEnd = useCallback(() => {
    const list = scroller.current;
    if (!list) return;
    list.scrollTop = list.scrollHeight;
    top.current = list.scrollTop;
  }, [scroller]);

  const goToEnd = useCallback(() => {
    isFollowing.current = true;
    isHeld.current = false;
    setAway(false);
    moveToEnd();
  }, [moveToEnd]);

  /** The page leads the reader to another position, and stays there. */
  const leave = useCallback(() => {
    isFollowing.current = false;
  }, []);

  useLayoutEffect(goToEnd, [goToEnd]);

  useEffect(() => {
    const list = scroller.current;
    const text = content.current;
    if (!list || !text) return;
    const endOf = () => list.scrollHeight - list.clientHeight;
    top.current = list.scrollTop;
    let end = endOf();
    let isPressed = false;
    const settle = (isAtEnd: boolean) => {
      if (isAtEnd) isFollowing.current = true;
      end = endOf();
      setAway((isHeld.current || !isFollowing.current) && list.scrollTop < end - NEAR);
    };
    const onScroll = () => {
      const moved = list.scrollTop - top.current;
      top.current = list.scrollTop;
      // Growth also moves the end away, so only an upward scroll leaves it, however short: the page must not fight a
      // finger.
      if (moved < -1) isFollowing.current = false;
      // A reader who scrolls down to the last known end has reached the end.
      const isAtEnd = moved > 0 ? top.current > Math.min(end, endOf()) - NEAR : top.current > endOf() - 1;
      if (moved > 0 && isAtEnd && !isPressed) isHeld.current = false;
      settle(isAtEnd);
    };
    // The end may move away from a reader who turns the wheel towards it.
    const onWheel = (event: WheelEvent) => {
      if (event.deltaY > 0 && (isHeld.current || !isFollowing.current) && list.scrollTop + event.deltaY > endOf() - NEAR) goToEnd();
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "End" && event.target === list) goToEnd();
    };
    // The reader wants to look at the element that they open or close, so the page must not scroll it away.
    const onClick = (event: MouseEvent) => {
      if (!(event.target instanceof Element)) return;
      // Another version arrives later, and the messages after it may be longer than the page.
      if (event.target.closest('.versions [aria-disabled="false"]')) return leave();
      if (!event.target.closest("[aria-expanded]")) return;
      leave();
      requestAnimationFrame(() => requestAnimationFrame(() => settle(list.scrollTop > endOf() - 1)));
    };
    const onGrowth = () => {
      if (isFollowing.current && !isHeld.current) moveToEnd();
      settle(list.scrollTop > endOf() - 1);
    };
    const onPress = ({ pointerType, button, target }: PointerEvent) => {
      isPressed = pointerType === "mouse" && button === 0 && target instanceof Element && !target.closest(PRESSED);
      if (isPressed) isHeld.current = true;
    };
    const letGo = () => {
      const selection = getSelection();
      if (!isHeld.current || isPressed || (selection && !selection.isCollapsed && selection.containsNode(text, true))) return;
      isHeld.current = false;
      onGrowth();
    };
    // A browser does not report each release, for example not on a scrollbar; the next move shows it.
    const onRelease = ({ buttons }: PointerEvent) => {
      if (!isPressed || buttons & 1) return;
      isPressed = false;
      letGo();
    };
    // New words: before the next press or release of a button, which would otherwise find the end at its old place.
    const words = new MutationObserver(onGrowth);
    words.observe(text, { childList: true, characterData: true, subtree: true });
    // Growth without new words, such as a picture that arrives.
    const sizes = new ResizeObserver(onGrowth);
    sizes.observe(list);
    sizes.observe(text);
    const releases = ["pointerup", "pointercancel", "pointermove"] as const;
    releases.forEach((release) => addEventListener(release, onRelease));
    text.addEventListener("pointerdown", onPress);
    document.addEventListener("selectionchange", letGo);
    list.addEventListener("scroll", onScroll, { passive: true });
    list.addEventListener("wheel", onWheel, { passive: true });
    list.addEventListener("keydown", onKey);
    list.addEventListener("click", onClick, { capture: true });
    return () => {
      words.disconnect();
      sizes.disconnect();
      releases.forEach((release) => removeEventListener(release, onRelease));
      text.removeEventListener("pointerdown", onPress);
      document.removeEventListener("selectionchange", letGo);
      list.removeEventListener("scroll", onScroll);
      list.removeEventListener("wheel", onWheel);
      list.removeEventListener("keydown", onKey);
      list.removeEventListener("click", onClick, { capture: true });
    };
  }, [scroller, content, goToEnd, moveToEnd, leave]);

  return { isAway, goToEnd, leave };
}
