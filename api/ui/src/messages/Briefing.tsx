// A briefing tells the reader some news, and the reader may want to talk about it.
import type { ReactNode } from "react";

import type { Data } from "../chat/message";
import { words } from "../i18n";
import { Icon } from "./icons";
import { Markdown } from "./markdown/Markdown";
import { Moment } from "./SentAt";

/** `children` are its actions, where it stands in a list. */
export function Briefing({ briefing, children }: { briefing: Data["briefing"]; children?: ReactNode }) {
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
      <Markdown text={briefing.summary} isDocument />
      {children}
    </div>
  );
}
