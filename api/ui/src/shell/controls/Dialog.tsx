// This modal dialog is the browser's own, which keeps the focus inside and returns it afterwards.
import { useId, useLayoutEffect, useRef, type ReactNode } from "react";

import { words } from "../../i18n";
import { Icon } from "./icons";
import "./Dialog.css";

type Props = {
  title: string;
  /** In the middle, from the side where a line begins or ends (`panel`), or as large as the page. */
  as?: "card" | "drawer" | "picture" | "panel";
  /** Without it, the dialog stays until the reader has settled its matter. */
  onClose?: () => void;
  children: ReactNode;
};

export function Dialog({ title, as = "card", onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const name = useId();
  // Order matters: the browser returns the focus only if the dialog closes before its removal.
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);

  return (
    <dialog
      ref={element}
      className="dialog"
      data-as={as}
      aria-labelledby={name}
      onCancel={(event) => {
        // Only the parent removes the dialog; and a file picker's `cancel` bubbles.
        if (event.target !== event.currentTarget) return;
        event.preventDefault();
        onClose?.();
      }}
      onClick={(event) => {
        // The content covers the dialog's own box, so a click on the dialog itself hits the backdrop.
        if (event.target === event.currentTarget) onClose?.();
      }}
    >
      <div className="dialog-box">
        <header className="dialog-head">
          <h2 id={name}>{title}</h2>
          {onClose && (
            <button type="button" className="icon-button" aria-label={words.shell.close} title={words.shell.close} onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  );
}
