// A quiet line about the answer: something that the reader should know, and need not act on.
import type { Data } from "../chat/message";
import { words } from "../i18n";
import { Icon } from "./icons";

export function Warning({ warning }: { warning: Data["warning"] }) {
  return (
    <p className="notice" data-kind="warning">
      <Icon name="warning" />
      <span dir="auto">{words.warning[warning.code] ?? warning.message}</span>
    </p>
  );
}

export function Compressed() {
  return <p className="notice">{words.message.compressed}</p>;
}
