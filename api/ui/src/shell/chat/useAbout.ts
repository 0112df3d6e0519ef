// This hook reads the facts of the open conversation beside its messages, and whether it exists.
import { Problem } from "holdfast-client/problem";
import { useEffect, useState } from "react";

import { readConversation, type Conversation } from "../../client/server";

type Read = { id: string; conversation: Conversation | undefined };

/** Asks the server for a conversation that the list does not have, such as that of a link. */
export function useAbout(id: string | undefined, listed: Conversation | undefined): { about?: Conversation; isMissing: boolean; readAgain(): void } {
  const [last, setLast] = useState<Read>();
  const [count, setCount] = useState(0);
  const isListed = listed !== undefined;
  useEffect(() => {
    if (id === undefined || isListed) return;
    let isOver = false;
    readConversation(id).then(
      (conversation) => isOver || setLast({ id, conversation }),
      // The read of the messages reports any other failure.
      (error: unknown) => {
        if (!isOver && error instanceof Problem && error.status === 404) setLast({ id, conversation: undefined });
      },
    );
    return () => {
      isOver = true;
    };
  }, [id, isListed, count]);

  const known = last?.id === id ? last : undefined;
  return {
    about: listed ?? known?.conversation,
    isMissing: !isListed && known !== undefined && !known.conversation,
    readAgain: () => setCount((many) => many + 1),
  };
}
