// The state of an entity, which the reader changes in place.
import type { Entity, EntityKind } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { refocus } from "../../refocus";
import { edit } from "../edits";
import { nameOf, STATES } from "../kinds";
import { Choice } from "./Choice";

export function StateChoice({ kind, entity }: { kind: EntityKind; entity: Entity }) {
  const choose = (state: string) => {
    void edit(kind, entity, { state });
    // A list moves the entity to another group, and the focus goes with it; a closed group does not show it.
    refocus(() => document.querySelector<HTMLElement>(`[data-id="${CSS.escape(entity.id)}"] .in-place-state`) ?? document.getElementById("chat"));
  };
  return (
    <Choice
      look="state"
      label={texts.stateOf(nameOf(entity))}
      value={entity.state}
      options={STATES[kind]}
      textOf={stateText}
      onChoose={choose}
    />
  );
}

export function stateText(state: string): string {
  return texts.state[state] ?? state;
}
