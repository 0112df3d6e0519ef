// Who the server takes the reader for. By default nobody is asked; where only tokens count, the page asks for one.
import { useCallback, useEffect, useState } from "react";

import { giveUpUnsent } from "../chat/live";
import { readerTabs } from "../chat/tabs";
import { Problem } from "../client/problem";
import { claimConversations, me, type Me } from "../client/server";
import { bareOf, forgetToken, keepToken, token } from "../client/token";
import { forgetDrafts } from "./drafts";

export type Session =
  | { state: "asking" }
  | { state: "known"; me: Me }
  /** The server answers nobody without a token, or not with this one. */
  | { state: "refused"; hadToken: boolean; mayBeNobody: boolean }
  /** The server could not be asked. The page goes on; what it does next will say what is wrong. */
  | { state: "unreachable" };

export type SignIn =
  | "done"
  | "refused"
  | "unreachable"
  | "not kept"
  /** So many conversations of the anonymous user can be taken along; `enter` signs in with or without them. */
  | { claimable: number };

export function useSession(): {
  session: Session;
  /** Grows when somebody else has become the reader: what was read before is not theirs. */
  count: number;
  signIn(token: string): Promise<SignIn>;
  /** Signs in with a token that the server accepts. Rejects with a `Problem` if the conversations could not be taken along. */
  enter(token: string, isClaiming?: boolean): Promise<void>;
  /** Takes them along after all. */
  claim(): Promise<void>;
  signOut(): void;
  askAgain(): void;
} {
  const [session, setSession] = useState<Session>({ state: "asking" });
  const [count, setCount] = useState(0);

  const askAgain = useCallback(() => {
    me().then(
      (known) => setSession({ state: "known", me: known }),
      async (error: unknown) => setSession(isRefusal(error) ? await refused() : { state: "unreachable" }),
    );
  }, []);
  useEffect(askAgain, [askAgain]);

  const begin = useCallback(() => {
    setCount((many) => many + 1);
    askAgain();
  }, [askAgain]);
  useEffect(
    () =>
      readerTabs.onTold(() => {
        // What is open here is not the new reader's.
        history.replaceState(null, "", "/");
        begin();
      }),
    [begin],
  );

  const enter = useCallback(async (given: string, isClaiming?: boolean) => {
    const as = bareOf(given);
    if (isClaiming) await claimConversations({ as });
    // The open conversation belongs to the anonymous user, who stays behind.
    else if (isClaiming === false) history.replaceState(null, "", "/");
    setSession({ state: "known", me: await me({ as }) });
    keepToken(given);
    giveUpUnsent();
    setCount((many) => many + 1);
    readerTabs.tell({});
  }, []);

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
    giveUpUnsent();
    readerTabs.tell({});
    begin();
  }, [begin]);

  return { session, count, signIn, enter, claim, signOut, askAgain };
}

/** Whether the browser would keep it; the reader stays who they are. */
function canKeep(given: string): boolean {
  const before = token();
  const isKept = keepToken(given);
  if (before) keepToken(before);
  else forgetToken();
  return isKept;
}

/** Who has a token that is no longer good may go on without it, where the server answers nobody in particular. */
async function refused(): Promise<Session> {
  const hadToken = token() !== undefined;
  const mayBeNobody = hadToken && (await me({ asNobody: true }).then(() => true, () => false));
  return { state: "refused", hadToken, mayBeNobody };
}

function isRefusal(error: unknown): error is Problem {
  return error instanceof Problem && error.status === 401;
}
