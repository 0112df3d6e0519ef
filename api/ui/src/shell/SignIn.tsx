// Asks for the token of somebody whom the server wants to know. The server checks it; the page only carries it.
import { useId, useState, type FormEvent } from "react";

import { words } from "../i18n";
import { Dialog } from "./Dialog";
import type { SignIn as Outcome } from "./useSession";
import "./SignIn.css";

type Props = {
  /** Why the page asks. */
  why: string;
  signIn(token: string): Promise<Outcome>;
  /** Where one may go on as nobody. */
  forget?: () => void;
  onClose?: () => void;
};

export function SignIn({ why, signIn, forget, onClose }: Props) {
  const [token, setToken] = useState("");
  const [isAsking, setIsAsking] = useState(false);
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
    else setComplaint(complaintOf(outcome));
  };

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

function complaintOf(outcome: Exclude<Outcome, "done">): string {
  if (outcome === "unreachable") return words.shell.account.unreachable;
  return outcome === "not kept" ? words.shell.account.notKept : words.shell.account.refused;
}
