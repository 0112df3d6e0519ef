// Merging makes fewer chunks with equal content. A replay of a long answer has ten thousand pieces, and a page that
// folds them one by one is busy for seconds.
import type { UIMessageChunk } from "ai";

/** Returns the stream with neighbouring pieces of one text, one reasoning, or one call's arguments joined. */
export function merged(chunks: readonly UIMessageChunk[]): UIMessageChunk[] {
  const fewer: UIMessageChunk[] = [];
  for (const chunk of chunks) {
    const last = fewer.at(-1);
    const both = last && together(last, chunk);
    if (both) fewer[fewer.length - 1] = both;
    else fewer.push(chunk);
  }
  return fewer;
}

function together(first: UIMessageChunk, second: UIMessageChunk): UIMessageChunk | undefined {
  if (first.type === "text-delta" && second.type === "text-delta" && first.id === second.id) {
    return { ...first, delta: first.delta + second.delta };
  }
  if (first.type === "reasoning-delta" && second.type === "reasoning-delta" && first.id === second.id) {
    return { ...first, delta: first.delta + second.delta };
  }
  if (first.type === "tool-input-delta" && second.type === "tool-input-delta" && first.toolCallId === second.toolCallId) {
    return { ...first, inputTextDelta: first.inputTextDelta + second.inputTextDelta };
  }
  return undefined;
}
