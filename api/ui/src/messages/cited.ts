// The sources of the answer around a mark.
import { createContext } from "react";

export interface Citation {
  number: number;
  documentId: string;
  title: string;
  page?: number;
  /** Unicode scalar values of the document's text. */
  start: number;
  end: number;
}

export interface Cited {
  byNumber: ReadonlyMap<number, Citation>;
  /** Shows the cited place beside the chat. */
  show(citation: Citation): void;
}

export const Cited = createContext<Cited | undefined>(undefined);
