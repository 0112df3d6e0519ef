// The agents that one may talk to, and the one that was chosen last.
import { useEffect, useState } from "react";

import { readAgents, type Agent } from "../client/server";
import { keep, read } from "./kept";

export function useAgents(isAllowed: boolean): {
  agents: Agent[];
  /** The one for the next new chat. */
  chosen: string | undefined;
  choose(id: string | undefined): void;
} {
  const [agents, setAgents] = useState<Agent[]>([]);
  const [wanted, setWanted] = useState(() => read("agent"));
  useEffect(() => {
    // More than a page of them would be no choice.
    if (isAllowed) readAgents({ limit: 200 }).then(({ items }) => setAgents(items), () => {});
  }, [isAllowed]);

  const choose = (id: string | undefined) => {
    keep("agent", id);
    setWanted(id);
  };
  // The agent that was chosen last may be gone by now.
  return { agents, chosen: agents.find(({ id }) => id === wanted)?.id, choose };
}
