// Talks in a chat with a client of the AI SDK: main.mjs BASE {"sdk": …, "chat": …, "text": …, "approve": …, "stop": …}
//
// The program answers questions, and reconnects when its connection breaks. Its result has its messages.
import { chatOf } from "./chat.mjs";
import { wasCutOff } from "./patiently.mjs";

const [base, parameters] = process.argv.slice(2);
const { sdk, chat: id, text, approve = true, stop = false } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));
const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

const textOf = (message) => message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
let chat;
const last = () => chat?.messages.at(-1);
// A page that renders late still shows answered parts as open.
const answered = new Set();
const open = (is) =>
  last()?.role === "assistant" && last().parts.find((part) => is(part) && !answered.has(part.toolCallId));

// The tools of the front end.
const clientTools = [
  { name: "locate", description: "Where is it?", inputSchema: { type: "object", properties: { city: { type: "string" } } } },
];

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

chat = await chatOf(sdk, { api: `${base}/api/chat`, id, body: { clientTools }, changed });
await chat.sendMessage({ text });
for (let resumed = 0; ; await pause(20)) {
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
report({ end: { messages: chat.messages, error: chat.error?.message } });
process.exit(0);
