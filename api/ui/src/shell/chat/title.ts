// The browser's tab shows this title.

/** `waiting` conversations wait for the reader. */
export function pageTitle(title: string | undefined, isAnswering: boolean, waiting = 0): string {
  const plain = title ? `${shortened(title)} · Holdfast` : "Holdfast";
  const name = waiting > 0 ? `(${waiting}) ${plain}` : plain;
  // A background tab shows that its answer is still running.
  return isAnswering ? `● ${name}` : name;
}

function shortened(title: string): string {
  const characters = [...title.replace(/\s+/g, " ").trim()];
  return characters.length > 60 ? `${characters.slice(0, 59).join("").trimEnd()}…` : characters.join("");
}

/** Returns the name of a conversation without a title: its first words. */
export function firstWords(text: string): string | undefined {
  const line = text.trim().split("\n", 1)[0]!.trim();
  return line === "" ? undefined : shortened(line);
}
