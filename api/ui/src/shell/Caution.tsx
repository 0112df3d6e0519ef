// This quiet line stands above everything while the server says that it may lose its data.
import { onWake } from "holdfast-client/wake";
import { useEffect, useState } from "react";

import { readWarnings } from "../client/server";
import { words } from "../i18n";
import { Icon } from "./controls/icons";
import "./Caution.css";

/** `warning` is the server's warning about itself beside its readiness. */
export function Caution({ warning }: { warning?: string | null }) {
  const [warnings, setWarnings] = useState<string[]>([]);
  const [isHidden, setIsHidden] = useState(false);
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const ask = () => void readWarnings().then(setWarnings, () => {});
    ask();
    // A restart may have ended the server's warnings meanwhile.
    return onWake(ask);
  }, []);
  const reasons = warning && !warnings.includes(warning) ? [...warnings, warning] : warnings;
  if (isHidden || reasons.length === 0) return null;

  return (
    <aside className="caution">
      <Icon name="caution" />
      <p>{words.shell.caution.text}</p>
      <button type="button" className="caution-why" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        {words.shell.caution.why}
      </button>
      <button
        type="button"
        className="icon-button"
        aria-label={words.shell.caution.dismiss}
        title={words.shell.caution.dismiss}
        onClick={() => setIsHidden(true)}
      >
        <Icon name="close" />
      </button>
      {isOpen &&
        reasons.map((reason) => (
          <p key={reason} className="caution-reason" dir="auto">
            {reason}
          </p>
        ))}
    </aside>
  );
}
