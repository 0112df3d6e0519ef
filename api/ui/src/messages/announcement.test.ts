import { expect, test } from "vitest";

import { announcementOf } from "./announcement";

test.each([
  ["idle", "submitted", undefined, "answering"],
  ["submitted", "streaming", undefined, undefined],
  ["streaming", "idle", "completed", "complete"],
  ["streaming", "idle", "cancelled", "stopped"],
  ["waiting", "idle", "cancelled", "stopped"],
  // The component that shows the reason announces it.
  ["streaming", "idle", "failed", undefined],
  ["streaming", "waiting", undefined, "waiting"],
  ["loading", "idle", "cancelled", undefined],
  ["idle", "idle", "cancelled", undefined],
] as const)("%s, then %s (%s): %s", (before, now, status, expected) => {
  expect(announcementOf(before, now, status)).toBe(expected);
});
