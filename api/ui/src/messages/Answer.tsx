// Shows the segments of an answer, or of a card, and at the end the run's current activity.
import { useEffect, useMemo, useState } from "react";

import type { ChatMessage } from "../chat/message";
import { childrenOf, underWay } from "../chat/plans";
import { words } from "../i18n";
import { later } from "../later";
import { Activity, Working } from "./Activity";
import { Briefing } from "./Briefing";
import { durationsOf } from "./call";
import { Cited, type Citation } from "./cited";
import { Markdown, Marking } from "./markdown/Markdown";
import { Warning } from "./Notice";
import { withoutQuestions } from "./reply";
import { type Segment, segmentsOf } from "./segments";
import type { Actions } from "./useActions";

// The page loads these later, because most conversations have none of them.
const Plan = later(async () => (await import("./Plan")).Plan);
const Approval = later(async () => (await import("./Approval")).Approval);
const Question = later(async () => (await import("./Question")).Question);
const MessageFiles = later(async () => (await import("../files/MessageFiles")).MessageFiles);

type Props = {
  message: ChatMessage;
  /** The questions that fields below the answer show. */
  questions?: readonly string[];
  /** Whether its run works or waits. */
  isLive: boolean;
  /** Whether the run is producing more content. */
  isWorking: boolean;
  /** The agent's own word for its current activity. */
  doing?: string;
  actions: Actions;
};

export function Answer({ message, questions = [], isLive, isWorking, doing, actions }: Props) {
  const segments = segmentsOf(message.parts);
  const durations = durationsOf(message);
  const runs = childrenOf(message.parts);
  const state = (isLive && underWay(message.parts)) || doing;
  const { marking, cited, sources } = useSources(message);
  const last = segments.at(-1);
  const isShown = last?.kind === "activity" || (last?.kind === "text" && last.isStreaming);
  const isSilent = useLasting(isWorking && !isShown, last ? 400 : 0);

  const show = (segment: Segment) => {
    switch (segment.kind) {
      case "text":
        return <Markdown key={segment.key} text={questions.length > 0 ? withoutQuestions(segment.text, questions) : segment.text} isStreaming={segment.isStreaming && isWorking} />;
      case "activity":
        return <Activity key={segment.key} items={segment.items} isActive={isWorking && segment === last} isLive={isLive} state={state} durations={durations} runs={runs} />;
      case "files":
        return <MessageFiles key={segment.key} files={segment.files} label={words.files.ofTools} />;
      case "approval":
        return <Approval key={segment.key} message={message} call={segment.call} isLive={isLive} decide={actions.decide} />;
      case "question":
        return <Question key={segment.key} message={message} call={segment.call} isLive={isLive} answer={actions.answer} />;
      case "plan":
        return <Plan key={segment.key} plan={segment.plan} isLive={isLive} />;
      case "briefing":
        return <Briefing key={segment.key} briefing={segment.briefing} />;
      case "warning":
        return <Warning key={segment.key} warning={segment.warning} />;
    }
  };
  return (
    <Marking value={marking}>
      <Cited value={cited}>
        {segments.map(show)}
        {isSilent && <Working state={state} />}
        {sources && <sources.Sources {...sources} hasEnded={!isLive} />}
      </Cited>
    </Marking>
  );
}

/** The code of answers with sources, which the page loads with the first source. */
let citing: typeof import("./citing") | undefined;

/** Until the code arrives, marks are text of the same width. */
function useSources({ parts }: ChatMessage) {
  const [loaded, setLoaded] = useState(citing);
  const [shown, show] = useState<Citation>();
  const sources = parts.filter((part) => part.type === "source-document");
  const hasSources = sources.length > 0;
  useEffect(() => {
    if (hasSources && !loaded) import("./citing").then((module) => setLoaded((citing = module)), () => {});
  }, [hasSources, loaded]);
  // While the text grows, marks without a new source need no other render.
  const cited = useMemo(() => loaded?.citedBy(sources, show), [loaded, JSON.stringify(sources)]);
  return { marking: hasSources ? loaded?.marking : undefined, cited, sources: cited && loaded && hasSources && { Sources: loaded.Sources, cited, shown, show } };
}

/** Whether a state has lasted this long: a short state should not flicker. */
function useLasting(is: boolean, ms: number): boolean {
  const [lasts, setLasts] = useState(is && ms === 0);
  useEffect(() => {
    if (!is) return setLasts(false);
    const timer = setTimeout(() => setLasts(true), ms);
    return () => clearTimeout(timer);
  }, [is, ms]);
  return is && (lasts || ms === 0);
}
