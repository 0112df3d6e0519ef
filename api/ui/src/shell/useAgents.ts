// The agents that one may talk to, and the one that was chosen last.
import { useEffect, useState } from "react";

import { readAgents, type Agent } from "../client/server";
import { keep, read } from "./kept";

export function useAgents(isAllowed: boolean): {
  agents: Agent[];
  /** There were some the last time, so their place is kept until they come. */
  areExpected: boolean;
  /** The one for the next new chat. */
  chosen: string | undefined;
  choose(id: string | undefined): void;
} {
  const [agents, setAgents] = useState<Agent[]>();
  const [wanted, setWanted] = useState(() => read("agent"));
  useEffect(() => {
    // More than a page of them would be no choice.
    if (isAllowed) readAgents({ limit: 200 }).then(({ items }) => setAgents(items), () => setAgents([]));
  }, [isAllowed]);
  useEffect(() => {
    if (agents) keep("agents", agents.length > 0 ? "some" : undefined);
  }, [agents]);

  const choose = (id: string | undefined) => {
    keep("agent", id);
    setWanted(id);
  };
  // The agent that was chosen last may be gone by now.
  const chosen = agents?.find(({ id }) => id === wanted)?.id;
  return { agents: agents ?? [], areExpected: !agents && read("agents") !== undefined, chosen, choose };
}
