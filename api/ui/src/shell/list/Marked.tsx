// Shows a text with the words that a search has found.
import { marksOf } from "./marks";

export function Marked({ text, query }: { text: string; query: string }) {
  return query === "" ? text : marksOf(text, query).map(({ text, isMarked }, index) => (isMarked ? <mark key={index}>{text}</mark> : text));
}
