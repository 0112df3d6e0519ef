// The elements of an answer that are not drawn as markdown has them.
import { createContext, type MouseEvent, type ReactNode, useContext } from "react";

import { words } from "../../i18n";
import { Icon } from "../icons";
import { hostOf, isNote, safeAddress } from "./links";

/** Whether this is in a link already: there can be none in it. */
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

/** An image that the model names is not loaded, because its address alone could tell somebody what was said here. */
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

/** A table that is wider than the text scrolls by itself; it can be focused so that the keyboard can scroll it. */
export function Table({ children }: { children: ReactNode }) {
  return (
    <div className="table" role="group" aria-label={words.message.table} tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}

/** A task's box, which shows and cannot be clicked. */
export function Task({ isDone }: { isDone: boolean }) {
  return <span className="task" role="img" data-done={isDone || undefined} aria-label={isDone ? words.message.done : words.message.notDone} />;
}
