// Shows a tool's input or output: formatted, and folded if it is long.
import { type ReactNode } from "react";

import { pretty } from "./call";
import { LongText } from "./LongText";
import { isFolded, structureIn } from "./structure";

export function Value({ value }: { value: unknown }) {
  const structure = structureIn(value);
  if (structure === undefined || !isFolded(structure)) return <LongText text={pretty(structure ?? value)} isCode />;
  return (
    <div className="plain value" tabIndex={0} role="group">
      <Fields of={structure} />
    </div>
  );
}

function Fields({ of }: { of: object }) {
  return Object.entries(of).map(([name, value]) => <Field key={name} name={Array.isArray(of) ? undefined : name} value={value} />);
}

function Field({ name, value }: { name?: string; value: unknown }) {
  const label: ReactNode = name !== undefined && <span className="value-name">{name}: </span>;
  if (typeof value !== "object" || value === null || !isFolded(value, 4)) {
    return (
      <div dir="auto">
        {label}
        {JSON.stringify(value)}
      </div>
    );
  }
  return (
    <details>
      <summary dir="auto">
        {label}
        {Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`}
      </summary>
      <Fields of={value} />
    </details>
  );
}
