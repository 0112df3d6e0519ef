// A long conversation is drawn in blocks of messages: the browser skips a whole block that is out of sight.
import type { ChatMessage } from "../chat/message";

/** The least number of messages in a block. It ends before a message of the reader, whose buttons overlap what follows. */
export const BLOCK = 20;

export interface Block {
  /** The id of its first message. */
  key: string;
  messages: ChatMessage[];
}

/**
 * Returns the messages in blocks. Blocks before and after the message `from` begin as they did when it was the first
 * message, so earlier messages and new ones change no other block.
 */
export function blocksOf(messages: readonly ChatMessage[], from: string | undefined): Block[] {
  const middle = Math.max(0, messages.findIndex(({ id }) => id === from));
  return [...before(messages.slice(0, middle)), ...after(messages.slice(middle))];
}

function after(messages: ChatMessage[]): Block[] {
  const blocks: Block[] = [];
  for (const message of messages) {
    const last = blocks.at(-1);
    if (!last || (last.messages.length >= BLOCK && message.role === "user")) blocks.push({ key: message.id, messages: [message] });
    else last.messages.push(message);
  }
  return blocks;
}

function before(messages: ChatMessage[]): Block[] {
  const blocks: Block[] = [];
  let end = messages.length;
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    if (index > 0 && (end - index < BLOCK || messages[index]!.role !== "user")) continue;
    blocks.unshift({ key: messages[index]!.id, messages: messages.slice(index, end) });
    end = index;
  }
  return blocks;
}
