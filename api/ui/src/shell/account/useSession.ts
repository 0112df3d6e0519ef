// This hook holds the reader's identity at the server. By default the server requires none; where it accepts only
// tokens, the page asks for one.
import { Problem } from "holdfast-client/problem";
import { useCallback, useEffect, useState } from "react";

import { giveUpUnsent } from "../../chat/live";
import { readerTabs } from "../../chat/tabs";
import { Changes } from "../../changes";
import { claimConversations, me, type Me } from "../../client/server";
import { bareOf, forgetToken, keepToken, token } from "../../client/token";
import { forgetTrays } from "../../files/drafts";
import { Shown } from "../../shown";
import { useShown } from "../../useShown";
import { forgetDrafts, tabDrafts } from "../composer/drafts";

export type Session =
  | { state: "asking" }
  | { state: "known"; me: Me }
  /** The server refuses callers without a token, or with this one. */
  | { state: "refused"; hadToken: boolean; mayBeAnonymous: boolean }
  /** The page failed to reach the server. It continues; its next request will show the problem. */
  | { state: "unreachable" };

export type SignIn =
  | "done"
  | "refused"
  | "unreachable"
  | "not kept"
  /** The reader can claim this many conversations of the anonymous user; `enter` signs in with or without them. */
  | { claimable: number };

export interface Reader {
  session: Session;
  /** Grows when the reader changes: earlier results belong to another reader. */
  count: number;
  signIn(token: string): Promise<SignIn>;
  /**
   * Signs in with a token that the server accepts. Rejects with a `Problem` if the page failed to claim the
   * conversations.
   */
  enter(token: string, isClaiming?: boolean): Promise<void>;
  /** Claims the conversations later. */
  claim(): Promise<void>;
  signOut(): void;
  askAgain(): void;
}

export function useSession(): Reader {
  const [entries] = useState(() => new Changes<Session>());
  const [shown] = useState(() => new Shown<Session, Session>({ state: "asking" }, entries, (_, session) => session));
  const session = useShown(shown);
  const [count, setCount] = useState(0);

  const askAgain = useCallback(() => void shown.read(ask, (_, session) => session), [shown]);
  useEffect(askAgain, [askAgain]);

  const begin = useCallback(() => {
    setCount((many) => many + 1);
    askAgain();
  }, [askAgain]);
  useEffect(
    () =>
      readerTabs.onNotice(() => {
        // The open chat does not belong to the new reader.
        history.replaceState(null, "", "/");
        forgetTrays();
        tabDrafts.forgetAside();
        begin();
      }),
    [begin],
  );

  const enter = useCallback(async (given: string, isClaiming?: boolean) => {
    const as = bareOf(given);
    if (isClaiming) await claimConversations({ as });
    // The open conversation still belongs to the anonymous user.
    else if (isClaiming === false) history.replaceState(null, "", "/");
    entries.tell({ state: "known", me: await me({ as }) });
    keepToken(given);
    giveUpUnsent();
    // The files of the anonymous user go along with the conversations only.
    if (!isClaiming) forgetTrays();
    setCount((many) => many + 1);
    readerTabs.tell({});
  }, [entries]);

  const signIn = useCallback(
    async (given: string): Promise<SignIn> => {
      if (!canKeep(given)) return "not kept";
      try {
        const { claimable } = await me({ as: bareOf(given) });
        if (claimable && claimable.conversations > 0) return { claimable: claimable.conversations };
        await enter(given);
        return "done";
      } catch (error) {
        return isRefusal(error) ? "refused" : "unreachable";
      }
    },
    [enter],
  );

  const claim = useCallback(async () => {
    await claimConversations();
    askAgain();
  }, [askAgain]);

  const signOut = useCallback(() => {
    forgetToken();
    forgetDrafts();
    tabDrafts.forgetAside();
    forgetTrays();
    giveUpUnsent();
    readerTabs.tell({});
    begin();
  }, [begin]);

  return { session, count, signIn, enter, claim, signOut, askAgain };
}

async function ask(): Promise<Session> {
  try {
    return { state: "known", me: await me() };
  } catch (error) {
    return isRefusal(error) ? refused() : { state: "unreachable" };
  }
}

/** Whether the browser would keep the token; the reader stays signed in as before. */
function canKeep(given: string): boolean {
  const before = token();
  const isKept = keepToken(given);
  if (before) keepToken(before);
  else forgetToken();
  return isKept;
}

/** A reader whose token is no longer valid may continue without it, where the server accepts anonymous callers. */
async function refused(): Promise<Session> {
  const hadToken = token() !== undefined;
  const mayBeAnonymous = hadToken && (await me({ asAnonymous: true }).then(() => true, () => false));
  return { state: "refused", hadToken, mayBeAnonymous };
}

function isRefusal(error: unknown): error is Problem {
  return error instanceof Problem && error.status === 401;
}
