// A disclosure is a line that the reader can open. It renders its content only when open, so that a closed one costs
// nothing.
import { type ReactNode, useId, useState } from "react";

import { Icon } from "./icons";

export function Disclosure({ line, children }: { line: ReactNode; children: () => ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  return (
    <div className="disclosure" data-open={isOpen || undefined}>
      <button type="button" className="disclosure-line" aria-expanded={isOpen} aria-controls={isOpen ? id : undefined} onClick={() => setOpen(!isOpen)}>
        {line}
        <Icon name="chevron" />
      </button>
      {isOpen && (
        <div className="disclosure-body" id={id}>
          {children()}
        </div>
      )}
    </div>
  );
}
