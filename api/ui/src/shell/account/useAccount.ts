// The reader signs in and out. Another reader may not see what the page still has to do for the last one.
import { words } from "../../i18n";
import { showToast } from "../controls/toasts";
import type { Reader, SignIn } from "./useSession";

export interface Account {
  session: Reader["session"];
  signIn(token: string): Promise<SignIn>;
  enter(token: string, isClaiming?: boolean): Promise<void>;
  claim(): void;
  signOut(): void;
  askAgain(): void;
}

/** `settle` ends what the page has to do with the current reader's token; `leave` leaves the open conversation. */
export function useAccount(reader: Reader, settle: () => void, leave: () => void, onClaimed: () => void): Account {
  const { session, askAgain } = reader;
  return {
    session,
    askAgain,
    signIn: (token) => {
      settle();
      return reader.signIn(token);
    },
    enter: (token, isClaiming) => {
      settle();
      return reader.enter(token, isClaiming);
    },
    claim: () => void reader.claim().then(onClaimed, () => showToast(words.shell.account.notClaimed)),
    signOut: () => {
      settle();
      leave();
      reader.signOut();
    },
  };
}
