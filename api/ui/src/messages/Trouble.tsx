// Something went wrong: what, in plain words, and the way on.
import { useEffect, useState } from "react";

import type { Problem } from "../client/problem";
import { inSentences, words } from "../i18n";
import { messageField, useRefocus } from "../refocus";
import { Disclosure } from "./Disclosure";
import { durationIn } from "./duration";
import { Icon } from "./icons";
import { canHelp, detailOf, reasonFor } from "./reason";

type Props = {
  problem: Problem;
  /** Whether something was said before it went wrong. */
  isPartSaid: boolean;
  onRetry: () => void;
};

export function Trouble({ problem, isPartSaid, onRetry }: Props) {
  const left = useCountdown(problem);
  const detail = detailOf(words.trouble, problem);
  const section = useRefocus<HTMLElement>(messageField);
  return (
    <section className="trouble" ref={section}>
      <Icon name="warning" />
      <div>
        <p>
          {inSentences([reasonFor(words.trouble, problem), isPartSaid && words.trouble.kept])}
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
      {canHelp(problem) && (
        <button type="button" className="button" disabled={left > 0} onClick={onRetry}>
          {left > 0 ? words.trouble.retryIn(durationIn(words.duration, left * 1_000)) : words.trouble.retry}
        </button>
      )}
    </section>
  );
}

/** The seconds until one may try again. */
function useCountdown(problem: Problem): number {
  const [left, setLeft] = useState(problem.retryAfter ?? 0);
  useEffect(() => {
    const end = performance.now() + (problem.retryAfter ?? 0) * 1_000;
    // By the clock and not by ticks, because pages in the background are not woken every second.
    const count = () => setLeft(Math.max(0, Math.ceil((end - performance.now()) / 1_000)));
    count();
    const timer = setInterval(count, 500);
    return () => clearInterval(timer);
  }, [problem]);
  return left;
}
