// Shows a problem: the reason in plain words, and a retry.
import type { Problem } from "holdfast-client/problem";
import { useMemo } from "react";

import { inSentences, words } from "../i18n";
import { messageField, useRefocus } from "../refocus";
import { Disclosure } from "./Disclosure";
import { durationIn } from "./duration";
import { Icon } from "./icons";
import { canHelp, detailOf, reasonFor } from "./reason";
import { useSecondsUntil } from "./useSecondsUntil";

type Props = {
  problem: Problem;
  /** Whether the problem is an unsent message. */
  isUnsent: boolean;
  /** Whether the answer has text from before the problem. */
  isPartSaid: boolean;
  onRetry: () => void;
  /** Asks for the rest of an answer that a limit has cut. */
  onContinue?: () => void;
};

export function Trouble({ problem, isUnsent, isPartSaid, onRetry, onContinue }: Props) {
  const at = useMemo(() => (problem.retryAfter === undefined ? undefined : Date.now() + problem.retryAfter * 1_000), [problem]);
  const left = useSecondsUntil(at);
  const detail = detailOf(words.trouble, problem);
  const section = useRefocus<HTMLElement>(messageField);
  return (
    <section className="trouble" ref={section}>
      <Icon name="warning" />
      <div>
        <p>
          {inSentences([isUnsent && words.trouble.unsent, reasonFor(words.trouble, problem), isPartSaid && words.trouble.kept])}
        </p>
        {detail && (
          <Disclosure line={words.trouble.details}>
            {() => (
              <p className="trouble-detail" dir="auto">
                {detail}
              </p>
            )}
          </Disclosure>
        )}
      </div>
      {onContinue && (
        <button type="button" className="button" onClick={onContinue}>
          {words.message.goOn}
        </button>
      )}
      {canHelp(problem) && (
        <button type="button" className="button" disabled={left > 0} onClick={onRetry}>
          {left > 0 ? words.trouble.retryIn(durationIn(words.duration, left * 1_000)) : words.trouble.retry}
        </button>
      )}
    </section>
  );
}
