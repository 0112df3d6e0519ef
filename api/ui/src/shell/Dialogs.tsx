// The dialogs above the page. Only their names are in the page's first script.
import { words } from "../i18n";
import { later } from "../later";
import type { Account } from "./account/useAccount";

const SignIn = later(async () => (await import("./account/SignIn")).SignIn);
const ShortcutsDialog = later(async () => (await import("./shortcuts/ShortcutsDialog")).ShortcutsDialog);
const BriefingsDialog = later(async () => (await import("./list/BriefingsDialog")).BriefingsDialog);

export type DialogName = "shortcuts" | "sign in" | "briefings";

type Props = { open: DialogName | undefined; account: Account; onTalk(conversationId: string): void; onBriefingsChanged(): void; onClose(): void };

/** A refused reader must sign in, whatever else is open. */
export function Dialogs({ open, account, onTalk, onBriefingsChanged, onClose }: Props) {
  const { session, signIn, enter, signOut } = account;
  return (
    <>
      {session.state === "refused" && (
        <SignIn
          why={session.hadToken ? words.shell.account.expired : words.shell.account.why}
          signIn={signIn}
          enter={enter}
          forget={session.mayBeAnonymous ? signOut : undefined}
        />
      )}
      {open === "sign in" && <SignIn why={words.shell.account.choose} signIn={signIn} enter={enter} onClose={onClose} />}
      {open === "shortcuts" && <ShortcutsDialog onClose={onClose} />}
      {open === "briefings" && (
        <BriefingsDialog
          onTalk={(id) => {
            onClose();
            onTalk(id);
          }}
          onClose={onClose}
          onChanged={onBriefingsChanged}
        />
      )}
    </>
  );
}
