// Shows the items that a template begins a project with; the JSON is one click below.
import { texts } from "../../i18n/workspace";
import { type Content, contentOf, type Item } from "./content";

const KINDS = ["goals", "plans", "tasks", "documents", "outputs"] as const;

/** How many goals, plans and so on a template has. */
export function TemplateCounts({ body }: { body: unknown }) {
  const { counts } = contentOf(body);
  return <p className="template-facts">{KINDS.filter((kind) => counts[kind] > 0).map((kind) => texts.templates.counts[kind](counts[kind])).join(" · ")}</p>;
}

export function TemplateContent({ body }: { body: unknown }) {
  const content = contentOf(body);
  return (
    <div className="template-content">
      <Items name={texts.section.goals} items={content.goals} />
      {content.plans.map((plan, index) => (
        <section key={index}>
          <h4 dir="auto">
            <span className="kind">{texts.kind.plan}</span> {plan.name}
          </h4>
          {plan.about && <p dir="auto">{plan.about}</p>}
          <ItemList items={plan.tasks} />
        </section>
      ))}
      <Items name={texts.section.tasks} items={content.tasks} />
      <Items name={texts.section.documents} items={content.documents} />
      <Items name={texts.section.outputs} items={content.outputs} />
      <Relations relations={content.relations} />
      <details>
        <summary>{texts.templates.json}</summary>
        <pre tabIndex={0}>{JSON.stringify(body, null, 2)}</pre>
      </details>
    </div>
  );
}

function Items({ name, items }: { name: string; items: readonly Item[] }) {
  if (items.length === 0) return undefined;
  return (
    <section>
      <h4>{name}</h4>
      <ItemList items={items} />
    </section>
  );
}

function ItemList({ items }: { items: readonly Item[] }) {
  return (
    <ul>
      {items.map(({ name, about }, index) => (
        <li key={index} dir="auto">
          {name}
          {about && <span className="template-about">{about}</span>}
        </li>
      ))}
    </ul>
  );
}

function Relations({ relations }: { relations: Content["relations"] }) {
  if (relations.length === 0) return undefined;
  return (
    <section>
      <h4>{texts.section.relations}</h4>
      <ul>
        {relations.map(({ from, relation, to }, index) => (
          <li key={index} dir="auto">
            {from ?? texts.templates.theProject} <em>{texts.relations.name[relation] ?? relation}</em> {to ?? texts.templates.theProject}
          </li>
        ))}
      </ul>
    </section>
  );
}
