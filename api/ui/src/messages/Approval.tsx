// A card asks a human about a call: it shows exactly the pending call, and the possible answers.
import { useEffect, useRef, useState } from "react";

import type { Chat, Decision } from "../chat/chat";
import type { ChatMessage } from "../chat/message";
import { words } from "../i18n";
import { useRefocus } from "../refocus";
import { sent, useDraft } from "../shell/composer/useDraft";
import { type Call, approvalOf, nameOf, pretty, standingOf, wasEdited, wasInterrupted } from "./call";
import { CopyButton } from "./CopyButton";
import { draftOf, stepsIn } from "./draftSteps";
import { Disclosure } from "./Disclosure";
import { Icon, Spinner } from "./icons";
import { InputEditor } from "./InputEditor";
import { onEscape } from "./keys";
import { LongText } from "./LongText";
import { DraftEditor, DraftSteps } from "./PlanDraft";
import { CallDetail } from "./ToolCall";
import { useAnswer } from "./useAnswer";
import { visible } from "./visible";

type Props = { message: ChatMessage; call: Call; isLive: boolean; decide: Chat["decide"] };

export function Approval({ message, call, isLive, decide }: Props) {
  // This hook is here, because its note must outlive the card: it says that another page answered first.
  const answer = useAnswer();
  const row = useRef<HTMLDivElement>(null);
  const approval = approvalOf(call);
  const names = namesOf(approval?.id ?? "");
  const [draft, setDraft] = useState<string>();
  if (!approval) return undefined;
  const isOpen = standingOf(call, isLive) === "asked";
  // Another page has answered while the reader was writing, so the card returns the text.
  const isLost = !isOpen && draft !== undefined && !answer.isOurs;
  return (
    <div ref={row}>
      {isOpen ? (
        <Open
          call={call}
          answer={answer}
          onDraft={setDraft}
          names={names}
          decide={(decision) => sent(decide(message, approval.id, decision), names.input, names.reason)}
          resolved={() => row.current?.querySelector("button")}
        />
      ) : (
        <Resolved call={call} isLive={isLive} isEdited={approval.isEdited ?? wasEdited(message, approval.id)} />
      )}
      {isLost ? (
        <Unsent text={draft} />
      ) : (
        answer.note && (
          <p className="card-problem" role="status">
            {answer.note}
          </p>
        )
      )}
    </div>
  );
}

/** The names of the stored texts. */
const namesOf = (id: string) => ({ input: `input ${id}`, reason: `reason ${id}` });

type OpenProps = {
  names: ReturnType<typeof namesOf>;
  call: Call;
  answer: ReturnType<typeof useAnswer>;
  /** The reader's draft; undefined if the reader has written nothing. */
  onDraft: (text: string | undefined) => void;
  decide: (decision: Decision) => ReturnType<Chat["decide"]>;
  /** Returns the element that takes the card's place after the answer. */
  resolved: () => HTMLElement | null | undefined;
};

function Open({ names, call, answer: { isSending, isBusy, send }, onDraft, decide, resolved }: OpenProps) {
  const card = useRefocus<HTMLDivElement>(resolved);
  const [reason, setReason] = useDraft(names.reason);
  const [edited, setEdited] = useDraft(names.input);
  const [mode, setMode] = useState<"asking" | "editing" | "denying">(edited !== "" ? "editing" : reason !== "" ? "denying" : "asking");
  /** A form that the reader left open is open again, and takes no focus. */
  const [isReopened, setReopened] = useState(mode !== "asking");
  useEffect(() => onDraft(edited || reason.trim() || undefined), []);
  const isAgain = wasInterrupted(call);
  const draft = draftOf(call);
  const { server, tool } = visibly(nameOf(call));
  const give = (decision: Decision) => void send(() => decide(decision));
  // A reader who goes back finds the focus where it was.
  const [left, setLeft] = useState<typeof mode>();
  const change = (mode: "editing" | "denying") => {
    if (isBusy) return;
    setReopened(false);
    setMode(mode);
  };
  const back = () => {
    if (isBusy) return;
    setLeft(mode);
    setMode("asking");
    // A plan is edited from its beginning again.
    if (draft) setEdited("");
    onDraft(undefined);
  };

  const write = (text: string | undefined, kept = text) => {
    setEdited(kept ?? "");
    onDraft(text);
  };
  const writeReason = (reason: string) => {
    setReason(reason);
    onDraft(reason.trim() || undefined);
  };

  return (
    <div className="card approval" ref={card} role="group" aria-label={draft ? words.plan.approve(draft.goal) : words.approval.title(tool)}>
      <h3 className="card-title">
        <Icon name="shield" />
        {draft ? words.plan.approve(draft.goal) : isAgain ? words.approval.interruptedTitle(tool) : words.approval.title(tool)}
        {server && <span className="call-server">{words.call.from(server)}</span>}
      </h3>
      {isAgain && <p className="card-note">{words.approval.interrupted}</p>}
      {mode === "editing" && draft ? (
        <DraftEditor steps={stepsIn(edited) ?? draft.steps} isReopened={isReopened} isBusy={isBusy} onBack={back} onDraft={write} onApprove={(editedInput) => give({ decision: "approve", editedInput })} />
      ) : draft ? (
        <DraftSteps steps={draft.steps} notes={draft.notes} />
      ) : mode === "editing" ? (
        <InputEditor
          input={call.input}
          isBusy={isBusy}
          kept={edited || undefined}
          isReopened={isReopened}
          onBack={back}
          onDraft={(text) => write(text)}
          onApprove={(editedInput) => give({ decision: "approve", editedInput })}
        />
      ) : (
        <LongText text={visible(pretty(call.input))} isCode />
      )}
      {mode === "denying" && (
        <form
          className="card-form"
          onSubmit={(event) => {
            event.preventDefault();
            give({ decision: "deny", reason: reason.trim() || undefined });
          }}
        >
          <label>
            <span>{words.approval.reasonLabel}</span>
            <input className="field" dir="auto" value={reason} autoFocus={!isReopened} onChange={(event) => writeReason(event.target.value)} onKeyDown={onEscape(back)} />
          </label>
          <p className="card-hint">{words.approval.reasonHint}</p>
          <div className="card-actions">
            <button type="submit" className="button" data-danger aria-disabled={isBusy}>
              {words.approval.deny}
            </button>
            <button type="button" className="button" aria-disabled={isBusy} onClick={back}>
              {words.approval.back}
            </button>
          </div>
        </form>
      )}
      {mode === "asking" && (
        <div className="card-actions">
          <button type="button" className="button" data-main aria-disabled={isBusy} onClick={() => give({ decision: "approve" })}>
            {isSending && <Spinner />}
            {words.approval.approve}
          </button>
          <button type="button" className="button" autoFocus={left === "denying"} aria-disabled={isBusy} onClick={() => change("denying")}>
            {words.approval.deny}
          </button>
          {!isAgain && (
            <button type="button" className="button" data-plain autoFocus={left === "editing"} aria-disabled={isBusy} onClick={() => change("editing")}>
              {draft ? words.plan.edit : words.approval.editInput}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

/** A name may also contain characters that reverse the text beside it. */
function visibly({ server, tool }: ReturnType<typeof nameOf>): ReturnType<typeof nameOf> {
  return { server: server && visible(server), tool: visible(tool) };
}

/** Shows the reader's draft after another page has answered, so that the reader can read and copy it. */
function Unsent({ text }: { text: string }) {
  return (
    <div className="unsent">
      <div className="call-content-head">
        <p role="status">{words.approval.overtaken}</p>
        <CopyButton text={() => text} label={words.message.copy} />
      </div>
      <LongText text={text} isCode />
    </div>
  );
}

/** Shows the answer; the line opens to the call and its result. */
function Resolved({ call, isLive, isEdited }: { call: Call; isLive: boolean; isEdited: boolean }) {
  const standing = standingOf(call, isLive);
  const { tool } = nameOf(call);
  const isYes = standing === "completed" || standing === "running" || standing === "failed";
  return (
    <Disclosure
      line={
        <span className="call" data-standing={standing}>
          {standing === "running" ? <Spinner /> : <Icon name={isYes ? "check" : "cross"} />}
          <span className="call-name">{tool}</span>
          <span className="call-input" dir="auto">
            {outcomeOf(call, standing, isEdited)}
          </span>
          {standing === "failed" && <span className="call-end">{words.call.standing.failed}</span>}
        </span>
      }
    >
      {() => <CallDetail call={call} />}
    </Disclosure>
  );
}

function outcomeOf(call: Call, standing: ReturnType<typeof standingOf>, isEdited: boolean): string {
  const approval = approvalOf(call);
  if (standing === "denied") return approval?.reason ? words.approval.deniedWith(approval.reason) : words.approval.denied;
  if (standing === "expired") return words.approval.expired;
  if (standing === "unfinished" && approval?.approved !== true) return words.approval.closed;
  return isEdited ? words.approval.approvedEdited : words.approval.approved;
}
