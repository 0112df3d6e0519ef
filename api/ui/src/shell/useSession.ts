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
  | { state: "refused"; hadToken: boolean; mayBeNobody: boolean }
  /** The server could not be asked. The page goes on; what it does next will say what is wrong. */
  | { state: "unreachable" };

export type SignIn = "done" | "refused" | "unreachable" | "not kept";

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
      return isRefusal(error) ? "refused" : "unreachable";
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

/** Who has a token that is no longer good may go on without it, where the server answers nobody in particular. */
async function refused(): Promise<Session> {
  const hadToken = token() !== undefined;
  const mayBeNobody = hadToken && (await me({ asNobody: true }).then(() => true, () => false));
  return { state: "refused", hadToken, mayBeNobody };
}

function isRefusal(error: unknown): error is Problem {
  return error instanceof Problem && error.status === 401;
}
