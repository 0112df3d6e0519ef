// Who the server takes the reader for. By default nobody is asked; where only tokens count, the page asks for one.
import { useCallback, useEffect, useState } from "react";

import { readerTabs } from "../chat/tabs";
import { Problem } from "../client/problem";
import { me, type Me } from "../client/server";
import { forgetToken, keepToken, token } from "../client/token";
import { forgetDrafts } from "./drafts";

export type Session =
  | { state: "asking" }
  | { state: "known"; me: Me }
  /** The server answers nobody without a token, or not with this one. */
  | { state: "refused"; hadToken: boolean }
  /** The server could not be asked. The page goes on; what it does next will say what is wrong. */
  | { state: "unreachable" };

export type SignIn = "done" | { refused: string } | "unreachable" | "not kept";

export function useSession(): {
  session: Session;
  /** Grows when somebody else has become the reader: what was read before is not theirs. */
  count: number;
  signIn(token: string): Promise<SignIn>;
  signOut(): void;
  askAgain(): void;
} {
  const [session, setSession] = useState<Session>({ state: "asking" });
  const [count, setCount] = useState(0);

  const askAgain = useCallback(() => {
    me().then(
      (known) => setSession({ state: "known", me: known }),
      (error: unknown) => setSession(isRefusal(error) ? { state: "refused", hadToken: !!token() } : { state: "unreachable" }),
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

  const signIn = useCallback(async (given: string): Promise<SignIn> => {
    const before = token();
    if (!keepToken(given)) return "not kept";
    try {
      const known = await me();
      setSession({ state: "known", me: known });
      setCount((many) => many + 1);
      readerTabs.tell({});
      return "done";
    } catch (error) {
      if (before) keepToken(before);
      else forgetToken();
      return isRefusal(error) ? { refused: error.message } : "unreachable";
    }
  }, []);

  const signOut = useCallback(() => {
    forgetToken();
    forgetDrafts();
    readerTabs.tell({});
    begin();
  }, [begin]);

  return { session, count, signIn, signOut, askAgain };
}

function isRefusal(error: unknown): error is Problem {
  return error instanceof Problem && error.status === 401;
}
