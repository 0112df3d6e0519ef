// The chat clients: those below the hooks of each major version, the hook of React, and the one that counts chunks.

/** A chat of the AI SDK; `changed` is called whenever it has something new. */
export async function chatOf(sdk, { api, id, body, changed }) {
  if (sdk === "react") return (await import("./react.mjs")).chatOf({ api, id, body, changed });
  const ai = await import(sdk === "workflow" ? "ai7" : sdk);
  const transport = sdk === "workflow" ? await workflow(api, body) : new ai.DefaultChatTransport({ api, body });
  class Chat extends ai.AbstractChat {}
  const sendAutomaticallyWhen = (chat) => isAnswered(ai, chat);
  return new Chat({ id, transport, state: new State(changed), sendAutomaticallyWhen });
}

/** Whether the assistant has got all that it has asked for. */
export const isAnswered = (ai, chat) =>
  ai.lastAssistantMessageIsCompleteWithToolCalls(chat) ||
  // Version 5 has no approvals.
  (ai.lastAssistantMessageIsCompleteWithApprovalResponses?.(chat) ?? false);

async function workflow(api, more) {
  const { WorkflowChatTransport } = await import("@ai-sdk/workflow/client");
  const headers = { "content-type": "application/json" };
  const prepareSendMessagesRequest = ({ id, messages, trigger, messageId }) => ({
    headers,
    body: { id, message: messages.at(-1), trigger, messageId, ...more },
  });
  return new WorkflowChatTransport({ api, prepareSendMessagesRequest });
}

/** What the hooks of a framework keep. */
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
