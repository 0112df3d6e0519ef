// The frame of the page gives these to each page of the workspace.
import { useEffect } from "react";

import type { AgentContext } from "../client/context";
import { pageTitle } from "../shell/chat/title";

export interface Frame {
  isListShown: boolean;
  onShowList(): void;
  /** Begins a chat with a planner, in this context. */
  onTalk(context: AgentContext): void;
  /** Whether the reader may publish templates. */
  isOperator: boolean;
  /** The number of conversations that wait for the reader. */
  waiting: number;
  /** The runs at work that the list of conversations knows, as one text. */
  live: string;
}

/** Names the page in the browser's tab. */
export function useTitle(title: string | undefined, waiting: number): void {
  useEffect(() => {
    document.title = pageTitle(title, false, waiting);
  }, [title, waiting]);
}
