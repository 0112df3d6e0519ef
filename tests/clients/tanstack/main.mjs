// Chats with the client of TanStack AI: main.mjs BASE {"thread": …, "texts": […]}. It repeats its request with the id of the last
// frame after a cut, and sends all of its messages each time.
import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";

const [base, parameters] = process.argv.slice(2);
const { thread, texts } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));
let messages = [];

const client = new ChatClient({
  connection: fetchServerSentEvents(`${base}/ag-ui?protocolVersion=0.0.45`, { reconnect: { delayMs: 100 } }),
  threadId: thread,
  onChunk: (chunk) => report({ got: chunk }),
  onError: (error) => report({ got: { refused: error.message } }),
  onMessagesChange: (all) => (messages = all),
});

for (const text of texts) await client.sendMessage(text);
report({ end: messages });
// Timers of the client's own tools would keep the program alive.
process.exit(0);
