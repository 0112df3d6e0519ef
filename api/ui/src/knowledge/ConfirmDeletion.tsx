// The reader confirms a deletion that nothing can take back.
import { texts } from "../i18n/knowledge";
import { Dialog } from "../shell/controls/Dialog";

type Props = { title: string; text: string; onConfirm(): void; onClose(): void };

export function ConfirmDeletion({ title, text, onConfirm, onClose }: Props) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <div className="confirm-actions">
        <button type="button" className="button" autoFocus onClick={onClose}>
          {texts.cancel}
        </button>
        <button type="button" className="button" data-danger="" onClick={onConfirm}>
          {texts.delete}
        </button>
      </div>
    </Dialog>
  );
}
