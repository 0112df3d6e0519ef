// These components replace elements of an answer that the page does not render as markdown has them.
import { createContext, type MouseEvent, type ReactNode, useContext } from "react";

import { words } from "../../i18n";
import { Icon } from "../icons";
import { hostOf, isNote, safeAddress } from "./links";

/** Whether the component is inside a link, which cannot contain another one. */
const InLink = createContext(false);

export function Link({ address, id, describedBy, children }: { address?: string; id?: string; describedBy?: string; children: ReactNode }) {
  if (address && isNote(address)) {
    return (
      <a className="note" href={address} id={id} aria-describedby={describedBy} onClick={goToNote}>
        {children}
      </a>
    );
  }
  const safe = address && safeAddress(address);
  if (!safe) return address ? <span title={words.message.notLinked(address)}>{children}</span> : <>{children}</>;
  return (
    <a href={safe} title={safe} target="_blank" rel="noopener noreferrer nofollow">
      <InLink value={true}>{children}</InLink>
    </a>
  );
}

/** Goes to a footnote without a change of the page's address, which is the conversation's. */
function goToNote(event: MouseEvent<HTMLAnchorElement>) {
  event.preventDefault();
  const target = document.getElementById(decodeURIComponent(event.currentTarget.hash.slice(1)));
  target?.scrollIntoView({ block: "center" });
  const focusable = target?.matches("a") ? target : target?.querySelector("a");
  focusable?.focus({ preventScroll: true });
}

/**
 * The page does not load an image that the model names, because its address alone could leak the conversation's
 * content.
 */
export function Image({ address, alt }: { address?: string; alt?: string }) {
  const name = alt ? words.message.imageNamed(alt) : words.message.image;
  const isInLink = useContext(InLink);
  const safe = address && safeAddress(address);
  const content = (
    <>
      <Icon name="image" />
      <span>{name}</span>
    </>
  );
  if (!safe || isInLink) return <span className="image">{content}</span>;
  return (
    <a className="image" href={safe} title={`${safe} (${words.message.opensTab})`} target="_blank" rel="noopener noreferrer nofollow">
      {content} <span className="host">{hostOf(safe)}</span>
    </a>
  );
}

/** A table wider than the text scrolls by itself; it takes the focus, so that the keyboard can scroll it. */
export function Table({ children }: { children: ReactNode }) {
  return (
    <div className="table" role="group" aria-label={words.message.table} tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}

/** Shows a task's box, which the reader cannot click. */
export function Task({ isDone }: { isDone: boolean }) {
  return <span className="task" role="img" data-done={isDone || undefined} aria-label={isDone ? words.message.done : words.message.notDone} />;
}
