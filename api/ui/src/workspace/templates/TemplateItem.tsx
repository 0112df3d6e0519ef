// One template, whose content opens. An operator edits it, and publishes a requested one.
import { useState } from "react";

import { isBuiltin, type Template } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { stateText } from "../controls/StateChoice";
import { TemplateContent, TemplateCounts } from "./TemplateContent";
import { TemplateForm } from "./TemplateForm";

type Props = { template: Template; isOperator: boolean; onChanged(template: Template): void };

export function TemplateItem({ template, isOperator, onChanged }: Props) {
  const [isEdited, setIsEdited] = useState(false);
  const { name, key, kind, description, state, body } = template;
  const isEditable = isOperator && !isBuiltin(template);
  return (
    <li className="template">
      <div className="template-head">
        <h3 dir="auto">{name}</h3>
        <span className="kind">{isBuiltin(template) ? texts.templates.builtin : stateText(state)}</span>
      </div>
      <p className="template-facts">{[kind, key].filter((fact, index, all) => fact && all.indexOf(fact) === index).join(" · ")}</p>
      {description && <p dir="auto">{description}</p>}
      <TemplateCounts body={body} />
      {isEdited ? (
        <TemplateForm
          template={template}
          onDone={(changed) => {
            setIsEdited(false);
            if (changed) onChanged(changed);
          }}
        />
      ) : (
        <>
          <details>
            <summary>{texts.templates.show}</summary>
            <TemplateContent body={body} />
          </details>
          {isEditable && (
            <button type="button" className="button" onClick={() => setIsEdited(true)}>
              {texts.templates.edit}
            </button>
          )}
        </>
      )}
    </li>
  );
}
