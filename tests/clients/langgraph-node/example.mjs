import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: "http://127.0.0.1:8080/langgraph", apiKey: null });
const thread = await client.threads.create();
const input = { messages: [{ type: "human", content: "[approval] [tokens=5] hello" }] };
for await (const { event, data } of client.runs.stream(thread.thread_id, "agent", { input, streamMode: "values" })) {
  if (event === "values" && data.__interrupt__) console.log(data.__interrupt__[0].value.message);
}
const command = { resume: { approved: true } };
const { messages } = await client.runs.wait(thread.thread_id, "agent", { command });
console.log(messages.at(-1).content);
