// Chooses whom a new chat is with. Without agents there is nothing to choose, and nothing to see.
import { useId } from "react";

import { words } from "../i18n";
import { Icon } from "./icons";
import type { useAgents } from "./useAgents";

export function AgentPicker({ agents, areExpected, chosen, choose }: ReturnType<typeof useAgents>) {
  const field = useId();
  const description = agents.find(({ id }) => id === chosen)?.description;
  if (areExpected) return <div className="agent-picker" />;
  if (agents.length === 0) return null;
  return (
    <div className="agent-picker">
      <label htmlFor={field}>{words.shell.agent.name}</label>
      <span className="agent-choice">
        <select id={field} value={chosen ?? ""} onChange={(event) => choose(event.target.value || undefined)}>
          <option value="">{words.shell.agent.none}</option>
          {agents.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
        <Icon name="down" />
      </span>
      {description && <p dir="auto">{description}</p>}
    </div>
  );
}
