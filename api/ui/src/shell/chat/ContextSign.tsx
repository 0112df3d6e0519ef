// This sign tells how much of the model's budget the conversation takes.
import { words } from "../../i18n";
import type { Data } from "../../chat/message";
import "./ModelSign.css";

export function ContextSign({ context: { tokens, budget } }: { context: Data["context"] }) {
  const percent = Math.min(100, Math.round((tokens / budget) * 100));
  const label = words.shell.contextUsage(tokens.toLocaleString(), budget.toLocaleString());
  return (
    <span className="model-sign context-sign" role="img" aria-label={label} title={label}>
      {percent} %
    </span>
  );
}
