// The reader chooses the focus of the next message: the whole project, or one entity of it.
import { texts } from "../../i18n/workspace";
import { EntityPicker, type Picked } from "../../workspace/relations/EntityPicker";
import { Dialog } from "../controls/Dialog";
import "../../workspace/relations/relations.css";
import "../../workspace/workspace.css";

type Props = { projectId: string; isWide: boolean; onChoose(picked: Picked | undefined): void; onClose(): void };

export function FocusDialog({ projectId, isWide, onChoose, onClose }: Props) {
  return (
    <Dialog title={texts.context.chooseFocus} onClose={onClose}>
      <button type="button" className="button" aria-pressed={isWide} onClick={() => onChoose(undefined)}>
        {texts.context.wide}
      </button>
      <EntityPicker projectId={projectId} onChoose={onChoose} />
    </Dialog>
  );
}
