// Chats with the clients of the AI SDK: `main.mjs` runs the chats of all tests, and prints its port.
//
// A test opens a connection for each chat. Its first line is `{"base": …, "sdk": …, "chat": …, "text": …, "agentId": …,
// "approve": …, "stop": …}`. The chat answers questions, and reconnects when its connection breaks. Its result has its messages.
// One program serves all chats, because loading the packages takes longer than most chats do.
import { createServer } from "node:net";
import { createInterface } from "node:readline";

import { chatOf } from "./chat.mjs";
import { wasCutOff } from "./patiently.mjs";

const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));
const textOf = (message) => message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");

// The SDK prints the errors that a chat also returns.
console.error = () => {};

// The tools of the front end.
const clientTools = [
  { name: "locate", description: "Where is it?", inputSchema: { type: "object", properties: { city: { type: "string" } } } },
];

/** Talks in a chat to its end, and returns the result. `isWanted` says whether the test still waits for it. */
async function talk({ base, sdk, chat: id, text, agentId, approve = true, stop = false }, report, isWanted) {
  let chat;
  const last = () => chat?.messages.at(-1);
  // A page that renders late still shows answered parts as open.
  const answered = new Set();
  const open = (is) =>
    last()?.role === "assistant" && last().parts.find((part) => is(part) && !answered.has(part.toolCallId));

  let shown = 0;
  let stopped = false;
  const changed = () => {
    const answer = last()?.role === "assistant" ? textOf(last()) : "";
    if (answer.length === shown) return;
    shown = answer.length;
    report({ got: { shown } });
    if (stop && !stopped) {
      stopped = true;
      fetch(`${base}/api/chat/${id}/stop`, { method: "POST" });
    }
  };

  chat = await chatOf(sdk, { api: `${base}/api/chat`, id, body: { clientTools, agentId }, changed });
  await chat.sendMessage({ text });
  for (let resumed = 0; isWanted(); await pause(20)) {
    if (chat.status === "error") {
      if (!wasCutOff(chat.error)) break;
      // The hook resumes by itself.
      if (sdk === "react") continue;
      report({ got: { resumed: ++resumed } });
      await pause(50);
      chat.clearError();
      await chat.resumeStream();
    } else if (chat.status === "ready") {
      // The usage arrives at the end of a run.
      if (last()?.metadata?.usage) break;
      const approval = open((part) => part.state === "approval-requested");
      const call = open((part) => part.type === "tool-locate" && part.state === "input-available");
      if (approval) {
        answered.add(approval.toolCallId);
        report({ got: { approval: approval.approval.id } });
        await chat.addToolApprovalResponse({ id: approval.approval.id, approved: approve });
      } else if (call) {
        answered.add(call.toolCallId);
        report({ got: { call: call.input } });
        await chat.addToolOutput({ tool: "locate", toolCallId: call.toolCallId, output: { at: [48, 10] } });
      }
    }
  }
  return { messages: chat.messages, error: chat.error?.message };
}

const server = createServer(async (connection) => {
  connection.on("error", () => {});
  const report = (line) => connection.write(`${JSON.stringify(line)}\n`);
  try {
    const lines = createInterface({ input: connection })[Symbol.asyncIterator]();
    const parameters = JSON.parse((await lines.next()).value);
    report({ end: await talk(parameters, report, () => !connection.destroyed) });
  } catch (error) {
    report({ failed: error.stack });
  }
  connection.end();
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
// The program ends with its standard input.
process.stdin.on("end", () => process.exit()).resume();
