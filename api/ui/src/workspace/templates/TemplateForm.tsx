// An operator edits a template: its name, key, description and content.
import { Problem } from "holdfast-client/problem";
import { type FormEvent, useId, useState } from "react";

import { changeTemplate, publishTemplate, type Template, type TemplateFields } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { showToast } from "../../shell/controls/toasts";
import { objectIn } from "./body";

type Props = { template: Template; onDone(changed?: Template): void };

export function TemplateForm({ template, onDone }: Props) {
  const [name, setName] = useState(template.name);
  const [key, setKey] = useState(template.key ?? "");
  const [description, setDescription] = useState(template.description ?? "");
  const [body, setBody] = useState(() => JSON.stringify(template.body ?? {}, null, 2));
  const [complaint, setComplaint] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const id = useId();

  const send = async (perform: (id: string, fields: TemplateFields) => Promise<Template>, told: string) => {
    const content = objectIn(body);
    if (!content) return setComplaint(texts.templates.notJson);
    if (isBusy) return;
    setIsBusy(true);
    try {
      const fields: TemplateFields = { name: name.trim(), description: description.trim() || null, body: content };
      const changed = await perform(template.id, key.trim() === "" ? fields : { ...fields, key: key.trim() });
      showToast(told);
      onDone(changed);
    } catch (error) {
      setIsBusy(false);
      setComplaint(texts.templates.notSaved(error instanceof Problem ? error.message : String(error)));
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void send(changeTemplate, texts.templates.saved);
  };

  return (
    <form className="template-form" onSubmit={submit}>
      <label htmlFor={`${id}-name`}>{texts.templates.name}</label>
      <input id={`${id}-name`} className="field" dir="auto" autoFocus required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />
      <label htmlFor={`${id}-key`}>{texts.templates.key}</label>
      <input id={`${id}-key`} className="field" maxLength={100} value={key} onChange={(event) => setKey(event.target.value)} />
      <label htmlFor={`${id}-description`}>{texts.templates.description}</label>
      <textarea id={`${id}-description`} className="field" dir="auto" rows={2} value={description} onChange={(event) => setDescription(event.target.value)} />
      <label htmlFor={`${id}-body`}>{texts.templates.body}</label>
      <textarea id={`${id}-body`} className="field template-body" spellCheck={false} rows={10} value={body} onChange={(event) => setBody(event.target.value)} />
      <p className="template-complaint" role="alert">
        {complaint}
      </p>
      <div className="long-actions">
        {template.state === "requested" && (
          <button type="button" className="button" data-main="" aria-disabled={isBusy} onClick={() => void send(publishTemplate, texts.templates.published)}>
            {texts.templates.publish}
          </button>
        )}
        <button type="submit" className="button" aria-disabled={isBusy}>
          {texts.templates.save}
        </button>
        <button type="button" className="button" onClick={() => onDone()}>
          {texts.templates.cancel}
        </button>
      </div>
    </form>
  );
}
