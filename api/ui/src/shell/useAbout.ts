// What is known of the open conversation beside its messages, and whether there is one.
import { useEffect, useState } from "react";

import { Problem } from "../client/problem";
import { readConversation, type Conversation } from "../client/server";

type Read = { id: string; conversation: Conversation | undefined };

/** Asks the server for one that the list does not have, such as that of a link. */
export function useAbout(id: string | undefined, listed: Conversation | undefined): { about?: Conversation; isMissing: boolean; readAgain(): void } {
  const [last, setLast] = useState<Read>();
  const [count, setCount] = useState(0);
  const isListed = listed !== undefined;
  useEffect(() => {
    if (id === undefined || isListed) return;
    let isOver = false;
    readConversation(id).then(
      (conversation) => isOver || setLast({ id, conversation }),
      // Any other failure will be told where the messages are read.
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
