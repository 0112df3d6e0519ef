// The chat clients: the base class of the hooks in each major version, the hook of React, and the transport that counts chunks.

/** Returns a chat of the AI SDK. It calls `changed` after each change. */
export async function chatOf(sdk, { api, id, body, changed }) {
  if (sdk === "react") return (await import("./react.mjs")).chatOf({ api, id, body, changed });
  const ai = await import(sdk === "ai5" || sdk === "ai6" ? sdk : "ai");
  const Transport = sdk === "workflow" ? (await import("./workflow.mjs")).CountingTransport : ai.DefaultChatTransport;
  const transport = new Transport({ api, body });
  class Chat extends ai.AbstractChat {}
  const sendAutomaticallyWhen = (chat) => isAnswered(ai, chat);
  return new Chat({ id, transport, state: new State(changed), sendAutomaticallyWhen });
}

/** Returns whether the assistant has all answers. */
export const isAnswered = (ai, chat) =>
  ai.lastAssistantMessageIsCompleteWithToolCalls(chat) ||
  // Version 5 has no approvals.
  (ai.lastAssistantMessageIsCompleteWithApprovalResponses?.(chat) ?? false);

/** The state of a chat, which a framework's hook would keep. */
class State {
  status = "ready";
  error = undefined;
  messages = [];
  experimental_queuedMessages = [];

  constructor(changed) {
    this.changed = changed;
  }

  pushMessage(message) {
    this.messages = [...this.messages, message];
    this.changed();
  }

  popMessage() {
    this.messages = this.messages.slice(0, -1);
  }

  replaceMessage(index, message) {
    this.messages = this.messages.with(index, this.snapshot(message));
    this.changed();
  }

  snapshot(value) {
    return structuredClone(value);
  }
}
