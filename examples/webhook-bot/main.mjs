// A bot that answers the webhooks of a messenger.
import { createServer } from "node:http";

import { HoldfastClient } from "holdfast-client";

const { HOLDFAST_URL = "http://127.0.0.1:8080", REPLY_URL, PORT = "8001" } = process.env;
/** No message of a messenger is longer. */
const MAX_BODY_BYTES = 256 * 1024;

/** Each chat of the messenger is a session of Holdfast. */
const clientOf = (chat) => new HoldfastClient({ baseUrl: HOLDFAST_URL, headers: () => ({ "x-session-id": `bot-${chat}` }) });

/** Reads the body of a webhook; undefined if it is no message. */
async function messageOf(request) {
  let body = "";
  for await (const piece of request.setEncoding("utf8")) {
    body += piece;
    if (body.length > MAX_BODY_BYTES) return undefined;
  }
  try {
    const { chat, id, text } = JSON.parse(body);
    return [chat, id, text].every((field) => typeof field === "string" && field !== "") ? { chat, id, text } : undefined;
  } catch {
    return undefined;
  }
}

/** Sends the answer of a run to the messenger, after its end. */
async function reply(client, { chat, id }, run) {
  const { output_message: answer, error } = await client.wait(run.id);
  const text = answer?.content ?? error?.message ?? "There is no answer.";
  const body = JSON.stringify({ chat, id, text });
  await fetch(REPLY_URL, { method: "POST", headers: { "content-type": "application/json" }, body });
}

const server = createServer(async (request, response) => {
  const message = request.url === "/webhook" && request.method === "POST" ? await messageOf(request) : undefined;
  if (!message) return response.writeHead(400).end();
  const client = clientOf(message.chat);
  try {
    const { run } = await client.startRun({ input: message.text, key: `bot-${message.chat}-${message.id}` });
    response.writeHead(202).end();
    await reply(client, message, run);
  } catch (error) {
    // The messenger posts the webhook again.
    if (!response.headersSent) response.writeHead(503).end();
    console.error(`failed to answer ${message.id}:`, error.message);
  }
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(server.address().port));
