// This hook reads the agents of the server, and the reader's last choice.
import { patiently } from "holdfast-client/patience";
import { onWake } from "holdfast-client/wake";
import { useEffect, useState } from "react";

import { noChanges } from "../../changes";
import { readAgents, type Agent } from "../../client/server";
import { Shown } from "../../shown";
import { useShown } from "../../useShown";
import { keep, read } from "../kept";

export function useAgents(isAllowed: boolean): {
  agents: Agent[];
  /** The last read found agents, so the page reserves their space until they arrive. */
  areExpected: boolean;
  /** The agent of the next new chat. */
  chosen: string | undefined;
  choose(id: string | undefined): void;
} {
  const [shown] = useState(() => new Shown<Agent[] | undefined, never>(undefined, noChanges, (agents) => agents));
  const agents = useShown(shown);
  const [wanted, setWanted] = useState(() => read("agent"));
  useEffect(() => {
    if (!isAllowed) return;
    const left = new AbortController();
    // A reader could not choose from more agents than a page has.
    const ask = () => patiently(() => readAgents({ limit: 200 }), { signal: left.signal });
    // After a failed read, the known agents stay.
    const again = () => void shown.read(ask, (_, { items }) => items).catch(() => {});
    again();
    const stopListening = onWake(again);
    return () => {
      stopListening();
      left.abort();
    };
  }, [isAllowed, shown]);
  useEffect(() => {
    if (agents) keep("agents", agents.length > 0 ? "some" : undefined);
  }, [agents]);

  const choose = (id: string | undefined) => {
    keep("agent", id);
    setWanted(id);
  };
  return { agents: agents ?? [], areExpected: !agents && read("agents") !== undefined, chosen: chosenOf(wanted, agents), choose };
}

/**
 * The server may have deleted the chosen agent. Until the page has read the list, the reader may already write to it.
 */
export function chosenOf(wanted: string | undefined, agents: Agent[] | undefined): string | undefined {
  return agents && !agents.some(({ id }) => id === wanted) ? undefined : wanted;
}
