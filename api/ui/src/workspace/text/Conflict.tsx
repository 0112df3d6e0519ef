// Two people have changed one text. The writer sees both, and decides which one stays, or edits both together.
import { useEffect, useRef } from "react";

import { texts } from "../../i18n/workspace";
import { merged } from "./merged";
import type { Editing, TextActions } from "./useText";

type Props = { editing: Extract<Editing, { at: "conflict" }>; field: "body" | "description"; actions: TextActions };

export function Conflict({ editing: { unsaved, theirs, isBusy, problem }, field, actions }: Props) {
  const theirText = theirs[field] ?? "";
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div className="conflict">
      <h2 ref={heading} tabIndex={-1}>
        {texts.text.conflict}
      </h2>
      <p className="workspace-note">{texts.text.conflictNote}</p>
      <div className="conflict-sides">
        <Side name={texts.text.mine} text={unsaved.text} action={texts.text.keepMine} isBusy={isBusy} onChoose={actions.keepMine} />
        <Side name={texts.text.theirs} text={theirText} action={texts.text.takeTheirs} isBusy={isBusy} onChoose={actions.takeTheirs} />
      </div>
      <div className="long-actions">
        <button type="button" className="button" data-main="" aria-disabled={isBusy} onClick={() => actions.merge(merged(unsaved.base, unsaved.text, theirText))}>
          {texts.text.merge}
        </button>
        <p role="alert">{problem && texts.text.notSaved}</p>
      </div>
    </div>
  );
}

type SideProps = { name: string; text: string; action: string; isBusy?: boolean; onChoose(): void };

function Side({ name, text, action, isBusy, onChoose }: SideProps) {
  return (
    <section className="conflict-side" aria-label={name}>
      <h3>{name}</h3>
      <pre tabIndex={0} dir="auto">
        {text}
      </pre>
      <button type="button" className="button" aria-disabled={isBusy} onClick={onChoose}>
        {action}
      </button>
    </section>
  );
}
