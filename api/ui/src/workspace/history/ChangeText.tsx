// One change in words.
import { locale } from "../../i18n";
import type { Change } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { INNER_KINDS, type Kind } from "../address";
import { stateText } from "../controls/StateChoice";
import { dayText } from "../dates";
import { type ChangedField, changedFields, nameIn, projectIn } from "./described";
import { EntityName } from "./EntityName";

export function ChangeText({ change }: { change: Change }) {
  const { kind, action, entity_id } = change;
  const name = nameIn(change);
  const kindText = texts.kind[kind] ?? kind;
  const isThere = action !== "delete" && action !== "remove" && isLinked(kind);
  return (
    <div className="change">
      <p>
        {texts.history.action[action](kindText)}{" "}
        {isThere ? <EntityName kind={kind} id={entity_id} name={name} projectId={projectIn(change)} /> : <strong dir="auto">{name ?? relationIn(change)}</strong>}
      </p>
      {changedFields(change).map((field) => (
        <p key={field.field} className="change-field">
          <span>{texts.history.field[field.field] ?? field.field}: </span>
          <del dir="auto">
            <span className="unseen">{texts.history.from} </span>
            {valueText(field, field.before)}
          </del>
          <span aria-hidden="true"> → </span>
          <ins dir="auto">
            <span className="unseen">{texts.history.to} </span>
            {valueText(field, field.after)}
          </ins>
        </p>
      ))}
    </div>
  );
}

function isLinked(kind: string): kind is Kind {
  return kind === "project" || (INNER_KINDS as string[]).includes(kind);
}

function relationIn({ before, after }: Change): string | undefined {
  const relation = (after ?? before)?.relation;
  return typeof relation === "string" ? (texts.relations.name[relation] ?? relation) : undefined;
}

/** A text longer than this shows its length. */
const SHOWN_CHARACTERS = 120;

function valueText({ field }: ChangedField, value: unknown): string {
  if (value === null || value === undefined || value === "") return texts.history.nothing;
  if (field === "priority" && typeof value === "number") return texts.priorities[value] ?? `${value}`;
  if (typeof value !== "string") return JSON.stringify(value).slice(0, SHOWN_CHARACTERS);
  if (field === "state") return stateText(value);
  if (field.endsWith("_at") || field.endsWith("_date")) return dayText(value, locale);
  return value.length > SHOWN_CHARACTERS ? texts.history.characters(value.length.toLocaleString(locale)) : value;
}
