// The page of a person: LangChain's useStream with a question to approve, a stop, and the words that came last.
import { useStream } from "@langchain/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

function Chat() {
  const [threadId, setThreadId] = useState(() => new URLSearchParams(location.search).get("thread"));
  const stream = useStream({
    apiUrl: `${location.origin}/langgraph`,
    assistantId: "agent",
    threadId,
    onThreadId: (id) => {
      setThreadId(id);
      history.replaceState(null, "", `?thread=${id}`);
    },
  });
  const [draft, setDraft] = useState("");
  const say = (event) => {
    event.preventDefault();
    setDraft("");
    void stream.submit({ messages: [{ type: "human", content: draft }] });
  };
  return (
    <main data-loading={stream.isLoading} data-thread={stream.threadId} data-ready={!stream.isThreadLoading}>
      {stream.messages.map((message, place) => (
        <p key={message.id ?? place} data-role={message.getType()} data-calls={(message.tool_calls ?? []).map((call) => call.name).join()}>
          {message.text}
        </p>
      ))}
      <output>{stream.toolCalls.map((call) => `${call.name} ${call.status}`).join()}</output>
      {stream.interrupts.map((interrupt) => (
        <fieldset key={interrupt.id}>
          <legend>{interrupt.value.message}</legend>
          <button onClick={() => stream.respond({ approved: true }, { interruptId: interrupt.id })}>Approve</button>
          <button onClick={() => stream.respond([{ type: "response", args: "not today" }])}>Refuse</button>
        </fieldset>
      ))}
      {stream.error ? <strong role="alert">{String(stream.error.message ?? stream.error)}</strong> : null}
      <form onSubmit={say}>
        <input aria-label="Message" value={draft} onChange={(event) => setDraft(event.target.value)} />
        <button>Send</button>
      </form>
      <button onClick={() => stream.stop()}>Stop</button>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
