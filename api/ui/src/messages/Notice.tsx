// This quiet line tells the reader a fact about the answer that needs no action.
import type { Data } from "../chat/message";
import { words } from "../i18n";
import { Icon } from "./icons";
import { warningIn } from "./reason";

export function Warning({ warning }: { warning: Data["warning"] }) {
  return (
    <p className="notice" data-kind="warning">
      <Icon name="warning" />
      <span dir="auto">{warningIn(words.warning, warning)}</span>
    </p>
  );
}
