// A project without tasks, or without entities of another kind, says how to begin.
import { texts } from "../../i18n/workspace";
import { Icon } from "../../shell/controls/icons";
import type { InnerKind } from "../address";

export function EmptyBoard({ kind, onTalk }: { kind: InnerKind; onTalk(): void }) {
  return (
    <div className="board-empty">
      <h2>{texts.list.none[kind]}</h2>
      <p>{texts.list.empty[kind]}</p>
      <p>{texts.list.begin}</p>
      <button type="button" className="button" onClick={onTalk}>
        <Icon name="talk" />
        {texts.list.plan}
      </button>
    </div>
  );
}
