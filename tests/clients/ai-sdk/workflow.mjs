// The transport that counts what it has got, and comes back behind it by itself.
import { WorkflowChatTransport } from "@ai-sdk/workflow/client";

import { patiently } from "./patiently.mjs";

/** Comes back by itself, behind what it has got. */
export class CountingTransport extends WorkflowChatTransport {
  resumeStreamIsReplay = true;

  constructor({ api, body }) {
    const headers = { "content-type": "application/json" };
    const prepareSendMessagesRequest = ({ id, messages, trigger, messageId }) => ({
      headers,
      body: { ...body, id, message: messages.at(-1), trigger, messageId },
    });
    super({ api, fetch: patiently, maxConsecutiveErrors: Infinity, prepareSendMessagesRequest });
  }
}
