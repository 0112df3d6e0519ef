// This sign names the model that answers, and shows in amber that the model is not real, where a reader looks before
// trusting an answer.
import type { ServerInfo } from "../../client/server";
import { words } from "../../i18n";
import "./ModelSign.css";

export function ModelSign({ model }: Pick<ServerInfo, "model">) {
  if (!model) return null;
  return (
    <span className="model-sign" data-scripted={!model.is_real || undefined} dir="auto" title={words.shell.model.answers(model.name)}>
      {model.is_real ? model.name : words.shell.model.scripted}
    </span>
  );
}
