// The name of an entity as a heading, which the reader changes in place: Enter and leaving the field keep the new name,
// Esc keeps the old one.
import { useRef, useState } from "react";

import type { Entity, EntityKind } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { isComposing } from "../../isComposing";
import { Icon } from "../../shell/controls/icons";
import { edit } from "../edits";
import { nameField, nameOf } from "../kinds";

export function NameField({ kind, entity, as: Heading }: { kind: EntityKind; entity: Entity; as: "h1" | "h2" }) {
  const [isOpen, setIsOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const isDone = useRef(false);
  const name = nameOf(entity);
  const done = (value: string) => {
    if (isDone.current) return;
    isDone.current = true;
    setIsOpen(false);
    const after = value.trim();
    if (after !== "" && after !== name) void edit(kind, entity, { [nameField(kind)]: after });
    requestAnimationFrame(() => button.current?.focus());
  };
  if (isOpen) {
    return (
      <input
        className="field name-field"
        dir="auto"
        autoFocus
        defaultValue={name}
        maxLength={200}
        aria-label={texts.project.name}
        onFocus={(event) => event.target.select()}
        onBlur={(event) => done(event.target.value)}
        onKeyDown={(event) => {
          if (isComposing(event) || (event.key !== "Enter" && event.key !== "Escape")) return;
          event.preventDefault();
          event.stopPropagation();
          done(event.key === "Enter" ? event.currentTarget.value : name);
        }}
      />
    );
  }
  return (
    <Heading className="name" dir="auto">
      {name}{" "}
      <button
        ref={button}
        type="button"
        className="icon-button"
        aria-label={texts.project.rename}
        title={texts.project.rename}
        onClick={() => {
          isDone.current = false;
          setIsOpen(true);
        }}
      >
        <Icon name="rename" />
      </button>
    </Heading>
  );
}
