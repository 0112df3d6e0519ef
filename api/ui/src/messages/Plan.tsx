// A plan is a list of steps that fills in. A step opens to its result, or to the work of its subagent.
import { type Plan as PlanData, type Step, hasEnded } from "../chat/plans";
import { words } from "../i18n";
import { later } from "../later";
import { Disclosure } from "./Disclosure";
import { Icon, Spinner } from "./icons";
import { Markdown } from "./markdown/Markdown";

const Subagent = later(async () => (await import("./Subagent")).Subagent);

export function Plan({ plan, isLive }: { plan: PlanData; isLive: boolean }) {
  const done = plan.steps.filter((step) => step.status === "completed").length;
  const title = plan.metadata.goal || words.plan.title;
  return (
    <div className="card plan" role="group" aria-label={title}>
      <h3 className="card-title">
        <span dir="auto">{title}</span>
        <span className="plan-progress">{words.plan.progress(done, plan.steps.length)}</span>
      </h3>
      <progress className="unseen" max={plan.steps.length} value={done} aria-label={title} />
      <ol className="plan-steps">
        {plan.steps.map((step) => (
          <PlanStep key={step.stepNumber} step={step} isLive={isLive && !hasEnded(plan)} />
        ))}
      </ol>
    </div>
  );
}

function PlanStep({ step, isLive }: { step: Step; isLive: boolean }) {
  const opens = step.runId !== undefined || step.result !== undefined;
  const line = (
    <span className="plan-line" dir="auto">
      {step.description}
      <span className="unseen">{words.plan.status[step.status]}</span>
    </span>
  );
  return (
    <li data-status={step.status}>
      <span className="plan-mark">
        <Mark status={step.status} isLive={isLive} />
      </span>
      <div className="plan-step">
        {opens ? <Disclosure line={line}>{() => <Work step={step} />}</Disclosure> : line}
        {step.error !== undefined && (
          <p className="plan-error" dir="auto">
            {step.error}
          </p>
        )}
      </div>
    </li>
  );
}

function Work({ step }: { step: Step }) {
  if (step.runId !== undefined) return <Subagent runId={step.runId} />;
  return <Markdown text={step.result ?? ""} isStreaming={false} />;
}

function Mark({ status, isLive }: { status: Step["status"]; isLive: boolean }) {
  switch (status) {
    case "executing":
      return isLive ? <Spinner /> : undefined;
    case "completed":
      return <Icon name="check" />;
    case "failed":
      return <Icon name="cross" />;
    case "pending":
      return undefined;
  }
}
