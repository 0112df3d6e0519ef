// Runs AG-UI's agent for LangGraph's server: main.mjs BASE {"steps": [{"say": …} | {"resume": …}, …]}. Reports each event, and the messages after
// each step.
import { LangGraphAgent } from "@ag-ui/langgraph";

const [base, parameters] = process.argv.slice(2);
const { steps } = JSON.parse(parameters);
const report = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
// The agent tells its console of failures, too.
console.error = (...words) => report({ got: { failed: words.map(String).join(" ") } });
const agent = new LangGraphAgent({ deploymentUrl: `${base}/langgraph`, graphId: "agent", threadId: crypto.randomUUID() });

for (const [number, { say, resume }] of steps.entries()) {
  if (say !== undefined) agent.addMessage({ id: `m${number}`, role: "user", content: say });
  const props = resume === undefined ? {} : { forwardedProps: { command: { resume: JSON.stringify(resume) } } };
  await agent.runAgent(props, { onEvent: ({ event: { type, name, delta, toolCallName } }) => report({ got: { type, name, delta, toolCallName } }) });
  report({ got: { step: number, messages: agent.messages } });
}
report({ end: agent.messages });
process.exit();
