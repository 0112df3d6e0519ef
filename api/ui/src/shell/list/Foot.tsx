// The foot stands below the list: it has the account, the theme and the shortcuts.
import { words } from "../../i18n";
import type { Account } from "../account/useAccount";
import { Icon } from "../controls/icons";
import { ThemeSwitch } from "./ThemeSwitch";
import "./Foot.css";

type Props = { account: Account; onSignIn(): void; onShortcuts(): void };

export function Foot({ account, onSignIn, onShortcuts }: Props) {
  const { session, claim } = account;
  return (
    <>
      <SignedIn account={account} onSignIn={onSignIn} />
      {session.state === "known" && session.me.claimable && session.me.claimable.conversations > 0 && (
        <button type="button" className="foot-claim" onClick={claim}>
          {words.shell.account.takeLater(session.me.claimable.conversations)}
        </button>
      )}
      <div className="foot-row">
        <ThemeSwitch />
        <button
          type="button"
          className="icon-button foot-keys"
          aria-label={words.shell.shortcuts.show}
          title={`${words.shell.shortcuts.show} (?)`}
          onClick={onShortcuts}
        >
          <Icon name="keyboard" />
        </button>
      </div>
    </>
  );
}

function SignedIn({ account: { session, signOut }, onSignIn }: Pick<Props, "account" | "onSignIn">) {
  // In development mode the server has no users, and the page offers no sign-in.
  if (session.state !== "known" || session.me.kind === "developer") return null;
  const { account } = words.shell;
  const isSignedIn = session.me.kind === "jwt";
  return (
    <div className="foot-row">
      <p className="foot-who">
        {isSignedIn ? (
          <>
            <span>{account.signedInAs}</span> <strong dir="auto">{session.me.user}</strong>
          </>
        ) : (
          <span>{account.stranger}</span>
        )}
      </p>
      <button
        type="button"
        className="icon-button"
        aria-label={isSignedIn ? account.leave : account.enter}
        title={isSignedIn ? account.leave : account.enter}
        onClick={isSignedIn ? signOut : onSignIn}
      >
        <Icon name={isSignedIn ? "leave" : "enter"} />
      </button>
    </div>
  );
}
