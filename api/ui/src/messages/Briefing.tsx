// A briefing: what somebody is to be told, and may want to talk about.
import type { Data } from "../chat/message";
import { words } from "../i18n";
import { Icon } from "./icons";
import { LongText } from "./LongText";
import { Moment } from "./SaidAt";

export function Briefing({ briefing }: { briefing: Data["briefing"] }) {
  return (
    <div className="card briefing" role="group" aria-label={words.briefing.label}>
      <p className="briefing-kind">
        <Icon name="briefing" />
        {words.briefing.label}
        {briefing.priority && <span className="briefing-priority">{words.briefing.priority(briefing.priority)}</span>}
        <Moment at={briefing.created_at} />
      </p>
      <h3 className="briefing-title" dir="auto">
        {briefing.title}
      </h3>
      <LongText text={briefing.summary} />
    </div>
  );
}
