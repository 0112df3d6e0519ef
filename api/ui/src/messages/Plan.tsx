// A plan is a list of steps that fills in.
import type { Data } from "../chat/message";
import { words } from "../i18n";
import { Icon, Spinner } from "./icons";

type Status = Data["plan"]["steps"][number]["status"];

export function Plan({ plan, isLive }: { plan: Data["plan"]; isLive: boolean }) {
  const done = plan.steps.filter((step) => step.status === "completed").length;
  const title = plan.title ?? words.plan.title;
  return (
    <div className="card plan" role="group" aria-label={title}>
      <h3 className="card-title">
        <span dir="auto">{title}</span>
        <span className="plan-progress">{words.plan.progress(done, plan.steps.length)}</span>
      </h3>
      <progress className="unseen" max={plan.steps.length} value={done} aria-label={title} />
      <ol className="plan-steps">
        {plan.steps.map((step) => (
          <li key={step.id} data-status={step.status}>
            <span className="plan-mark">
              <Mark status={step.status} isLive={isLive} />
            </span>
            <span dir="auto">{step.title}</span>
            <span className="unseen">{words.plan.status[step.status]}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

function Mark({ status, isLive }: { status: Status; isLive: boolean }) {
  switch (status) {
    case "active":
      return isLive ? <Spinner /> : undefined;
    case "completed":
      return <Icon name="check" />;
    case "failed":
      return <Icon name="cross" />;
    case "skipped":
      return <Icon name="skip" />;
    default:
      return undefined;
  }
}
