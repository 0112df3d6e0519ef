// The state of an entity, which the reader changes in place.
import type { Entity, EntityKind } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { edit } from "../edits";
import { nameOf, STATES } from "../kinds";
import { Choice } from "./Choice";

export function StateChoice({ kind, entity }: { kind: EntityKind; entity: Entity }) {
  return (
    <Choice
      look="state"
      label={texts.stateOf(nameOf(entity))}
      value={entity.state}
      options={STATES[kind]}
      textOf={stateText}
      onChoose={(state) => void edit(kind, entity, { state })}
    />
  );
}

export function stateText(state: string): string {
  return texts.state[state] ?? state;
}
