import { expect, test } from "vitest";

import { type ChatMessage, textOf } from "./message";

test("a copied answer is its markdown, with its lines", () => {
  const text = (text: string) => ({ type: "text" as const, text });
  const parts: ChatMessage["parts"] = [text("Quay 7\n20457 **Port**\n\n- a\n"), { type: "reasoning", text: "thinking" }, text("\n"), text("b  \nc")];
  expect(textOf({ id: "a", role: "assistant", parts })).toBe("Quay 7\n20457 **Port**\n\n- a\n\nb  \nc");
});
