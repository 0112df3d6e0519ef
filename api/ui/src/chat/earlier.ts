// The page first reads the newest messages of a conversation, and earlier ones when the reader goes there. It keeps those
// when it reads the newest ones again.
import type { ChatMessage } from "./message";
import type { Step } from "./reducer";
import { type Folded, type State, shownOf } from "./state";

/** Messages of the first read. */
export const NEWEST = 200;

/** Messages of one more read: for a reader who scrolls, and on the way to a message that is far away. */
export const EARLIER = 200;
export const FAR = 1_000;

/** Returns the messages of a new read with the earlier ones that the page has already, and the cursor of those before. */
export function withKept(state: State, read: ChatMessage[], earlier: string | undefined, folded: Folded): { messages: ChatMessage[]; earlier?: string } {
  const shown = shownOf(state, folded);
  // A read that reaches the beginning has no messages before it.
  const kept = earlier === undefined ? 0 : shown.findIndex(({ id }) => id === read[0]?.id);
  return kept > 0 ? { messages: [...shown.slice(0, kept), ...read], earlier: state.earlier } : { messages: read, earlier };
}

export function readEarlier(state: State, limit: number): Step {
  if (state.earlier === undefined || state.earlierProgress === "loading") return [state, []];
  return [{ ...state, earlierProgress: "loading" }, [{ do: "read-earlier", before: state.earlier, limit }]];
}

/** Adds the messages before the first one, unless the page has read other ones meanwhile. */
export function withEarlier(state: State, { before, messages, earlier }: { before: string; messages: ChatMessage[]; earlier?: string }, folded: Folded): Step {
  const next: State = { ...state, earlierProgress: undefined };
  if (state.earlier !== before) return [next, []];
  const added = (later: ChatMessage[]) => [...messages.filter(({ id }) => !later.some((message) => message.id === id)), ...later];
  const held = state.held && { ...state.held, messages: added(state.held.messages) };
  return [{ ...next, earlier, held }, [{ do: "set-messages", messages: added(folded.messages) }]];
}
