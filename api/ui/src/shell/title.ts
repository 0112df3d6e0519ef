// What stands in the browser's tab.

export function pageTitle(title: string | undefined, isAnswering: boolean): string {
  const name = title ? `${shortened(title)} · Holdfast` : "Holdfast";
  // A tab that one has left shows that its answer is still being made.
  return isAnswering ? `● ${name}` : name;
}

function shortened(title: string): string {
  const characters = [...title.replace(/\s+/g, " ").trim()];
  return characters.length > 60 ? `${characters.slice(0, 59).join("").trimEnd()}…` : characters.join("");
}
