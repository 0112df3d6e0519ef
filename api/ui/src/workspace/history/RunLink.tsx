// A link to the conversation in which a run has changed something.
import { useEffect, useState } from "react";

import { readRun } from "../../client/server";
import { texts } from "../../i18n/workspace";
import { pathOf } from "../../shell/address";
import { PageLink } from "../PageLink";

/** The conversations by their runs; a run without one has been deleted. */
const known = new Map<string, Promise<string | undefined>>();

export function RunLink({ runId }: { runId: string }) {
  const [conversation, setConversation] = useState<string>();
  useEffect(() => {
    let isOver = false;
    const read = known.get(runId) ?? readRun(runId).then((run) => run.conversation_id, () => undefined);
    known.set(runId, read);
    void read.then((id) => isOver || setConversation(id));
    return () => {
      isOver = true;
    };
  }, [runId]);
  if (conversation === undefined) return undefined;
  return <PageLink to={pathOf(conversation)}>{texts.history.conversation}</PageLink>;
}
