// Chats with the client of TanStack AI: main.mjs BASE {"thread": …, "texts": […]}, or BASE {"thread": …, "reload": TEXT, "kept": "server" | "local"}. It repeats its request with the id of the last
// frame after a cut, and sends all of its messages each time.
import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";

const [base, parameters] = process.argv.slice(2);
const { thread, texts = [], reload, kept } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));
let messages = [];

const client = new ChatClient({
  connection: fetchServerSentEvents(`${base}/ag-ui?protocolVersion=0.0.45`, { reconnect: { delayMs: 100 } }),
  threadId: thread,
  onChunk: (chunk) => report({ got: chunk }),
  onError: (error) => report({ got: { refused: error.message } }),
  onMessagesChange: (all) => (messages = all),
});

if (reload) {
  await loadAgain();
  process.exit(0);
}
for (const text of texts) await client.sendMessage(text);
report({ end: messages });
// Timers of the client's own tools would keep the program alive.
process.exit(0);

/** Closes a page in mid-answer, and opens it again: the messages are on the server, or in the browser's store. */
async function loadAgain() {
  const store = new Map();
  const local = { getItem: (key) => store.get(key), setItem: (key, value) => void store.set(key, value), removeItem: (key) => void store.delete(key) };
  const connection = fetchServerSentEvents(`${base}/ag-ui?protocolVersion=0.0.45`);
  const open = () => {
    const page = new ChatClient({ connection, threadId: thread, persistence: kept === "server" ? true : local });
    page.attach();
    return page;
  };
  const first = open();
  void first.sendMessage(reload);
  await until(() => textOf(first).split(" ").length > 3);
  const before = textOf(first);
  first.detach();
  first.dispose?.();
  const second = open();
  const stored = await until(async () => {
    const { items } = await (await fetch(`${base}/v1/runs`)).json();
    const run = await (await fetch(`${base}/v1/runs/${items[0].id}`)).json();
    return run.status === "completed" && run.output_message.content;
  });
  await until(() => textOf(second) === stored);
  report({ end: { before, stored, messages: second.getMessages() } });
}

function textOf(page) {
  const answers = page.getMessages().filter(({ role }) => role === "assistant");
  return answers.flatMap(({ parts }) => parts.filter(({ type }) => type === "text").map(({ content }) => content)).join("");
}

/** Waits until a function returns something, which the server or the client brings about. */
async function until(wanted) {
  for (;;) {
    const found = await wanted();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
