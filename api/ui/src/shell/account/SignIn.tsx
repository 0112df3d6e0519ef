// Asks for a token where the server requires one. The server checks it; the page only carries it.
import { useId, useState, type FormEvent } from "react";

import { words } from "../../i18n";
import { Dialog } from "../controls/Dialog";
import type { SignIn as Outcome } from "./useSession";
import "./SignIn.css";

type Props = {
  /** The reason why the page asks. */
  why: string;
  signIn(token: string): Promise<Outcome>;
  enter(token: string, isClaiming: boolean): Promise<void>;
  /** Forgets the token, where the server also accepts anonymous callers. */
  forget?: () => void;
  onClose?: () => void;
};

export function SignIn({ why, signIn, enter, forget, onClose }: Props) {
  const [token, setToken] = useState("");
  const [isAsking, setIsAsking] = useState(false);
  /** The number of conversations that the reader can claim. */
  const [claimable, setClaimable] = useState<number>();
  const [complaint, setComplaint] = useState<string>();
  const field = useId();
  const wrong = useId();

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() === "" || isAsking) return;
    setIsAsking(true);
    const outcome = await signIn(token);
    setIsAsking(false);
    if (outcome === "done") onClose?.();
    else if (typeof outcome === "object") setClaimable(outcome.claimable);
    else setComplaint(complaintOf(outcome));
  };

  const goOn = async (isClaiming: boolean) => {
    if (isAsking) return;
    setIsAsking(true);
    setComplaint(undefined);
    try {
      await enter(token, isClaiming);
      onClose?.();
    } catch {
      setComplaint(words.shell.account.notClaimed);
    } finally {
      setIsAsking(false);
    }
  };

  if (claimable !== undefined) {
    return (
      <Dialog title={words.shell.account.title} onClose={onClose}>
        <div className="sign-in">
          <p>{words.shell.account.claimable(claimable)}</p>
          <p className="sign-in-wrong" role="alert">
            {complaint}
          </p>
          <div className="sign-in-foot">
            <button type="button" className="button" disabled={isAsking} onClick={() => void goOn(false)}>
              {words.shell.account.leaveThem}
            </button>
            <button type="button" className="button" data-main="" autoFocus disabled={isAsking} onClick={() => void goOn(true)}>
              {words.shell.account.takeThem}
            </button>
          </div>
        </div>
      </Dialog>
    );
  }

  return (
    <Dialog title={words.shell.account.title} onClose={onClose}>
      <form className="sign-in" onSubmit={submit}>
        <p>{why}</p>
        <label htmlFor={field}>{words.shell.account.token}</label>
        <input
          id={field}
          className="field"
          type="password"
          autoComplete="current-password"
          autoCapitalize="off"
          spellCheck={false}
          autoFocus
          dir="ltr"
          value={token}
          aria-invalid={complaint !== undefined}
          aria-describedby={wrong}
          onChange={(event) => setToken(event.target.value)}
        />
        <p id={wrong} className="sign-in-wrong" role="alert">
          {complaint}
        </p>
        <div className="sign-in-foot">
          {forget && (
            <button type="button" className="button" onClick={forget}>
              {words.shell.account.forget}
            </button>
          )}
          <button type="submit" className="button" data-main="" disabled={token.trim() === "" || isAsking}>
            {words.shell.account.enter}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function complaintOf(outcome: Exclude<Outcome, "done" | object>): string {
  if (outcome === "unreachable") return words.shell.account.unreachable;
  return outcome === "not kept" ? words.shell.account.notKept : words.shell.account.refused;
}
