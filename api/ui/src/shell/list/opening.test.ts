import { expect, test, vi } from "vitest";

import { opening } from "./opening";

const click = (detail: number, more = {}) => ({ button: 0, ctrlKey: false, metaKey: false, shiftKey: false, detail, preventDefault: vi.fn(), ...more });

/** Presses and releases the button on the link, and returns whether the browser gives it the focus and follows it. */
function press(link: ReturnType<typeof opening>, detail: number, more = {}) {
  const [down, up] = [click(detail, more), click(detail, more)];
  link.onMouseDown(down);
  link.onClick(up);
  return { hasFocus: down.preventDefault.mock.calls.length === 0, isFollowed: up.preventDefault.mock.calls.length === 0 };
}

test("a double click opens the conversation once, leaves the focus alone and begins nothing else", () => {
  const open = vi.fn();
  const link = opening(open);
  expect(press(link, 1)).toEqual({ hasFocus: true, isFollowed: false });
  expect(press(link, 2)).toEqual({ hasFocus: false, isFollowed: false });
  expect(press(link, 3)).toEqual({ hasFocus: false, isFollowed: false });
  expect(open).toHaveBeenCalledTimes(1);
  expect(Object.keys(link)).toEqual(["onMouseDown", "onClick"]);
});

test("two clicks with time between them open it twice, and so does a key", () => {
  const open = vi.fn();
  const link = opening(open);
  press(link, 1);
  press(link, 1);
  link.onClick(click(0));
  expect(open).toHaveBeenCalledTimes(3);
});

test.each([{ ctrlKey: true }, { metaKey: true }, { shiftKey: true }, { button: 1 }])("the browser follows the link with %j, also at a second click", (more) => {
  const open = vi.fn();
  const link = opening(open);
  for (const detail of [1, 2]) expect(press(link, detail, more)).toEqual({ hasFocus: true, isFollowed: true });
  expect(open).not.toHaveBeenCalled();
});
