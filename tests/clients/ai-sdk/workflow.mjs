// The transport that counts its chunks, and resumes after the last one by itself.
import { WorkflowChatTransport } from "@ai-sdk/workflow/client";

import { patiently } from "./patiently.mjs";

/** A transport that resumes by itself after its last chunk. */
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
