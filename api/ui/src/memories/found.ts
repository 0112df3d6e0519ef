// The reader looks for memories by words of their texts and their agents.
import type { Memory } from "../client/memories";

/** Returns the memories that have each word. Every word may stand anywhere, in any case. */
export function found(memories: readonly Memory[], query: string, only: ReadonlySet<string> | undefined): Memory[] {
  const words = query.toLocaleLowerCase().split(/\s+/).filter((word) => word !== "");
  return memories.filter(({ id, text, agent }) => {
    const searched = `${text}\n${agent}`.toLocaleLowerCase();
    return (only?.has(id) ?? true) && words.every((word) => searched.includes(word));
  });
}

/** Returns the last day of a memory, as a date field has it. The memory expires with the end of a day in UTC. */
export function lastDay(expiresAt: string | null): string {
  return expiresAt === null ? "" : new Date(new Date(expiresAt).getTime() - 1).toISOString().slice(0, 10);
}
