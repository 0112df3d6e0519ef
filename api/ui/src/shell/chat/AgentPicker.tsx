// The reader chooses the agent of a new chat here. Without agents the picker shows nothing.
import { words } from "../../i18n";
import { Icon } from "../controls/icons";
import { Menu } from "../controls/Menu";
import type { useAgents } from "./useAgents";
import "./AgentPicker.css";

type Props = Pick<ReturnType<typeof useAgents>, "agents" | "chosen" | "choose">;

export function AgentPicker({ agents, chosen, choose }: Props) {
  const name = agents.find(({ id }) => id === chosen)?.name ?? words.shell.agent.none;
  const standard = { label: words.shell.agent.none, detail: words.shell.agent.noneDetail, isChosen: chosen === undefined, run: () => choose(undefined) };
  const others = agents.map(({ id, name, description }) => ({ label: name, detail: description ?? undefined, isChosen: id === chosen, run: () => choose(id) }));
  return (
    <div className="agent-picker">
      {agents.length > 0 && (
        <Menu label={words.shell.agent.chosen(name)} items={[standard, ...others]}>
          <span dir="auto">{name}</span>
          <Icon name="down" />
        </Menu>
      )}
    </div>
  );
}
