// This sign tells how much of the model's budget the conversation takes, once that is much.
import { locale, words } from "../../i18n";
import type { Data } from "../../chat/message";
import "./ModelSign.css";

/** The server summarises older messages before the budget is full, so less says nothing to a reader. */
const SHOWN_FROM = 60;

export function ContextSign({ context: { tokens, budget } }: { context: Data["context"] }) {
  const percent = Math.min(100, Math.round((tokens / budget) * 100));
  if (percent < SHOWN_FROM) return null;
  const label = words.shell.contextUsage(tokens.toLocaleString(locale), budget.toLocaleString(locale));
  return (
    <span className="model-sign context-sign" role="img" aria-label={label} title={label}>
      {percent} %
    </span>
  );
}
