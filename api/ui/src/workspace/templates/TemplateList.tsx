// The templates that new projects begin with. Operators also see what users have requested, and publish it.
import { useCallback } from "react";

import { readTemplateRequests, readTemplates, type Template } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { TEMPLATES_PATH } from "../address";
import { Rest } from "../controls/Rest";
import { type Frame, useTitle } from "../frame";
import { withItem, without } from "../listed";
import { Top } from "../Top";
import { useListed } from "../useListed";
import { TemplateItem } from "./TemplateItem";
import "./templates.css";

const readAll = (cursor: string | undefined) => readTemplates({ cursor });
const readRequests = (cursor: string | undefined) => readTemplateRequests({ cursor });

export function TemplateList({ frame }: { frame: Frame }) {
  useTitle(texts.templates.title, frame.waiting);
  const templates = useListed<Template>(readAll);
  const requests = useListed<Template>(frame.isOperator ? readRequests : undefined);
  const [ofTemplates, ofRequests] = [templates.changes, requests.changes];
  const onChanged = useCallback(
    (template: Template) => {
      ofTemplates.tell((listed) => withItem(listed, template));
      ofRequests.tell((listed) => (template.state === "requested" ? withItem(listed, template) : without(listed, template.id)));
    },
    [ofTemplates, ofRequests],
  );
  // An operator sees a request once, above.
  const others = frame.isOperator ? templates.items.filter(({ state }) => state !== "requested") : templates.items;
  return (
    <main className="chat workspace" id="chat" tabIndex={-1}>
      <Top frame={frame} path={[{ name: texts.templates.title, to: TEMPLATES_PATH }]} />
      <div className="workspace-scroll">
        <div className="workspace-column">
          <h1>{texts.templates.title}</h1>
          <p className="workspace-about">{texts.templates.about}</p>
          {frame.isOperator && (
            <section className="templates" aria-labelledby="templates-requested">
              <h2 id="templates-requested">{texts.templates.requested}</h2>
              <ul role="list">
                {requests.items.map((template) => (
                  <TemplateItem key={template.id} template={template} isOperator onChanged={onChanged} />
                ))}
              </ul>
              <Rest reading={requests}>
                <p className="edges-none">{texts.templates.noRequests}</p>
              </Rest>
            </section>
          )}
          <section className="templates" aria-labelledby="templates-others">
            <h2 id="templates-others">{texts.templates.others}</h2>
            <ul role="list">
              {others.map((template) => (
                <TemplateItem key={template.id} template={template} isOperator={frame.isOperator} onChanged={onChanged} />
              ))}
            </ul>
            <Rest reading={templates}>
              <p className="edges-none">{texts.templates.none}</p>
            </Rest>
          </section>
        </div>
      </div>
    </main>
  );
}
