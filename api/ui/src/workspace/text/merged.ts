// Two people have changed one text: this file puts both changes into one text, for a writer to go over.

/**
 * Returns a text with both changes. Where the changes meet, the writer's lines stand before the others'; lines that are
 * equal in both stand once.
 */
export function merged(base: string, mine: string, theirs: string): string {
  if (mine === theirs || theirs === base) return mine;
  if (mine === base) return theirs;
  const [before, own, other] = [base, mine, theirs].map((text) => text.split("\n")) as [string[], string[], string[]];
  const start = Math.min(equalAtStart(before, own), equalAtStart(before, other));
  const end = Math.min(equalAtEnd(before, own), equalAtEnd(before, other), before.length - start, own.length - start, other.length - start);
  const middle = (lines: string[]) => lines.slice(start, lines.length - end);
  // One of the two changes may be above the other: then the text between them splits the problem.
  const joined = joinedIn(middle(before), middle(own), middle(other));
  return [...own.slice(0, start), ...joined, ...own.slice(own.length - end)].join("\n");
}

function joinedIn(base: string[], own: string[], other: string[]): string[] {
  for (const [first, second] of [
    [own, other],
    [other, own],
  ] as const) {
    // Above the line `at`, only `first` has a change; from it on, only `second` has one.
    const kept = equalAtEnd(base, first);
    const at = base.length - kept;
    if (equalAtStart(base, second) >= at && kept > 0) return [...first.slice(0, first.length - kept), ...second.slice(at)];
  }
  const start = equalAtStart(own, other);
  const end = Math.min(equalAtEnd(own, other), own.length - start, other.length - start);
  return [...own.slice(0, own.length - end), ...other.slice(start, other.length - end), ...own.slice(own.length - end)];
}

function equalAtStart(one: string[], other: string[]): number {
  let count = 0;
  while (count < one.length && count < other.length && one[count] === other[count]) count += 1;
  return count;
}

function equalAtEnd(one: string[], other: string[]): number {
  let count = 0;
  while (count < one.length && count < other.length && one[one.length - 1 - count] === other[other.length - 1 - count]) count += 1;
  return count;
}
