// The reader confirms a deletion that nothing brings back.
import { texts } from "../i18n/memories";
import { Dialog } from "../shell/controls/Dialog";

type Props = { question: string; why: string; action: string; onConfirm(): void; onClose(): void };

export function Confirmation({ question, why, action, onConfirm, onClose }: Props) {
  return (
    <Dialog title={question} onClose={onClose}>
      <p>{why}</p>
      <div className="memories-actions">
        <button type="button" className="button" data-main="" onClick={onConfirm}>
          {action}
        </button>
        <button type="button" className="button" onClick={onClose}>
          {texts.cancel}
        </button>
      </div>
    </Dialog>
  );
}
