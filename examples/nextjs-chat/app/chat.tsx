"use client";

import { useChat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { AnswerTakenBack, HoldfastTransport } from "holdfast-client/ai-sdk";
import { useEffect, useState } from "react";

const transport = new HoldfastTransport();

const textOf = (message: UIMessage) => message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");

/** Shows a chat after its history has arrived; the history lacks an answer that is under way, and the stream brings it. */
export function Chat({ id }: { id: string }) {
  const [saved, setSaved] = useState<UIMessage[]>();
  useEffect(() => {
    void fetch(`/api/chat/${encodeURIComponent(id)}/messages`)
      // A new chat has no history.
      .then((answer) => (answer.ok ? answer.json() : []))
      .then(setSaved, () => setSaved([]));
  }, [id]);
  return saved ? <Talk id={id} saved={saved} /> : <p>Loading…</p>;
}

function Talk({ id, saved }: { id: string; saved: UIMessage[] }) {
  const [text, setText] = useState("");
  const { messages, sendMessage, status, error, clearError, resumeStream } = useChat({ id, messages: saved, resume: true, transport });
  useEffect(() => {
    if (!(error instanceof AnswerTakenBack)) return;
    clearError();
    void resumeStream();
  }, [error, clearError, resumeStream]);
  const isBusy = status === "submitted" || status === "streaming";
  return (
    <main>
      {messages.map((message) => (
        <p key={message.id}>
          <b>{message.role}:</b> {textOf(message)}
        </p>
      ))}
      {error && !(error instanceof AnswerTakenBack) && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text });
          setText("");
        }}
      >
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        {isBusy ? (
          <button type="button" onClick={() => void transport.cancel(id)}>
            Stop
          </button>
        ) : (
          <button>Send</button>
        )}
      </form>
    </main>
  );
}
