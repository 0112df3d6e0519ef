// Shows a tool call: one line with its state, which opens to its input and output.
import { words } from "../i18n";
import { later } from "../later";
import { type Call, inBrief, nameOf, pretty, standingOf } from "./call";
import { CopyButton } from "./CopyButton";
import { deedOf } from "./deeds";
import { Disclosure } from "./Disclosure";
import { durationIn } from "./duration";
import { entitiesIn } from "./entities";
import { Icon, Spinner } from "./icons";
import { structureIn } from "./structure";
import { Value } from "./Value";

const WorkspaceLinks = later(async () => (await import("./WorkspaceLinks")).WorkspaceLinks);
const Subagent = later(async () => (await import("./Subagent")).Subagent);

/** `runId` is the run that answers the call, if one does. */
export function ToolCall({ call, isLive, duration, runId }: { call: Call; isLive: boolean; duration?: number; runId?: string }) {
  const { server, tool } = nameOf(call);
  const standing = standingOf(call, isLive);
  const deed = standing === "completed" ? deedOf(words.activity.deeds, call) : undefined;
  return (
    <Disclosure
      line={
        <span className="call" data-standing={standing}>
          <CallMark standing={standing} />
          <span className="call-name">{deed ?? tool}</span>
          {server && <span className="call-server">{server}</span>}
          <span className="call-input" dir="auto">
            {!deed && inBrief(call.input)}
          </span>
          <span className="call-end">{standing === "completed" ? duration !== undefined && durationIn(words.duration, duration) : words.call.standing[standing]}</span>
        </span>
      }
    >
      {() => <CallDetail call={call} runId={runId} isNamed={deed !== undefined} />}
    </Disclosure>
  );
}

function CallMark({ standing }: { standing: keyof typeof words.call.standing }) {
  switch (standing) {
    case "preparing":
    case "running":
      return <Spinner />;
    case "completed":
      return <Icon name="check" />;
    case "asked":
      return <Icon name="question" />;
    default:
      return <Icon name="cross" />;
  }
}

/** Shows the input and output of a call, and the work of the run that answers it; with the tool's name where no line has it. */
export function CallDetail({ call, runId, isNamed }: { call: Call; runId?: string; isNamed?: boolean }) {
  const input = call.state === "input-streaming" ? (call.rawInput ?? call.input) : call.input;
  const entities = call.state === "output-available" ? entitiesIn(call.output) : [];
  return (
    <div className="call-detail">
      {isNamed && <p className="call-tool">{nameOf(call).tool}</p>}
      <Content label={words.call.input} value={input} nothing={words.call.noInput} />
      {runId !== undefined && <Subagent runId={runId} />}
      {call.state === "output-available" && runId === undefined && <Content label={words.call.output} value={call.output} nothing={words.call.noOutput} />}
      {entities.length > 0 && <WorkspaceLinks entities={entities} />}
      {call.state === "output-error" && <Content label={words.call.error} value={call.errorText} nothing={words.call.noOutput} />}
    </div>
  );
}

function Content({ label, value, nothing }: { label: string; value: unknown; nothing: string }) {
  const text = pretty(structureIn(value) ?? value);
  return (
    <div className="call-content" role="group" aria-label={label}>
      <div className="call-content-head">
        <span>{label}</span>
        {text !== "" && <CopyButton text={() => text} label={words.message.copy} />}
      </div>
      {text === "" ? <p className="nothing">{nothing}</p> : <Value value={value} />}
    </div>
  );
}
