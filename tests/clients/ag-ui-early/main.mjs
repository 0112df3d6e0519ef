// Runs an agent with a client of AG-UI that knows no version 1.0: main.mjs BASE {"thread": …, "texts": […]}. It refuses a call that
// begins before the one before has ended, and kinds of events that it does not know.
import { HttpAgent } from "@ag-ui/client";

const [base, parameters] = process.argv.slice(2);
const { thread, texts } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));
const agent = new HttpAgent({ url: `${base}/ag-ui`, threadId: thread });
const subscriber = {
  onEvent: ({ event }) => report({ got: event }),
  onRunFailed: ({ error }) => report({ got: { refused: error.message } }),
};

for (const [number, text] of texts.entries()) {
  agent.messages.push({ id: `${thread}-${number}`, role: "user", content: text });
  await agent.runAgent({}, subscriber).catch(({ message }) => report({ got: { refused: message } }));
}
report({ end: agent.messages });
