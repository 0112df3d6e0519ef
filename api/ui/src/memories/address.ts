// The page of memories has one address; its fragment names the memories that an answer has used.

export const MEMORIES_PATH = "/memories";

export const linkToMemories = (ids: readonly string[]) => `${MEMORIES_PATH}#${ids.join(",")}`;

/** Returns the memories that a fragment names; nothing for all. */
export function memoriesIn(hash: string): ReadonlySet<string> | undefined {
  const ids = hash.replace(/^#/, "").split(",").filter((id) => id !== "");
  return ids.length > 0 ? new Set(ids) : undefined;
}
