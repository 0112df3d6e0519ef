// The agents that one may talk to, and the one that was chosen last.
import { useEffect, useState } from "react";

import { patiently } from "../client/patience";
import { readAgents, type Agent } from "../client/server";
import { onWake } from "../client/wake";
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
    if (!isAllowed) return;
    const left = new AbortController();
    const ask = async () => {
      // More than a page of them would be no choice.
      const { items } = await patiently(() => readAgents({ limit: 200 }), { signal: left.signal });
      if (!left.signal.aborted) setAgents(items);
    };
    // Where they cannot be had, what was known of them stays.
    const again = () => void ask().catch(() => {});
    again();
    const stopListening = onWake(again);
    return () => {
      stopListening();
      left.abort();
    };
  }, [isAllowed]);
  useEffect(() => {
    if (agents) keep("agents", agents.length > 0 ? "some" : undefined);
  }, [agents]);

  const choose = (id: string | undefined) => {
    keep("agent", id);
    setWanted(id);
  };
  return { agents: agents ?? [], areExpected: !agents && read("agents") !== undefined, chosen: chosenOf(wanted, agents), choose };
}

/** The agent that was chosen last may be gone by now; as long as nobody says so, one may already write to it. */
export function chosenOf(wanted: string | undefined, agents: Agent[] | undefined): string | undefined {
  return agents && !agents.some(({ id }) => id === wanted) ? undefined : wanted;
}
