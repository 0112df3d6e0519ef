import { expect, it, vi } from "vitest";

import { forgetPreviews, keepPreview, previewOf } from "./previews";

it("the newest pictures stay, and the browser frees the others", () => {
  const freed = vi.spyOn(URL, "revokeObjectURL").mockImplementation(() => {});
  for (let n = 0; n < 22; n += 1) keepPreview(`${n}`, `blob:${n}`);
  expect([previewOf("1"), previewOf("2"), previewOf("21")]).toEqual([undefined, "blob:2", "blob:21"]);
  expect(freed.mock.calls.flat()).toEqual(["blob:0", "blob:1"]);
  forgetPreviews();
  expect(previewOf("21")).toBeUndefined();
  expect(freed).toHaveBeenCalledTimes(22);
  freed.mockRestore();
});
