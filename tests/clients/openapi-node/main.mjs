// Checks /openapi.json: main.mjs BASE {}. Two linters read it, and a generator makes types of it that compile.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const [base] = process.argv.slice(2);
const report = (line) => console.log(JSON.stringify(line));
const folder = await mkdtemp(join(tmpdir(), "openapi-"));
const at = (name) => join(folder, name);

/** Runs a package's program, without requests to other hosts. */
async function judge(name, args) {
  const program = join(import.meta.dirname, "node_modules", ".bin", name);
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true", CI: "true" };
  try {
    await promisify(execFile)(program, args, { cwd: folder, env, maxBuffer: 1 << 26 });
    report({ got: { name, verdict: "accepted" } });
  } catch (refused) {
    report({ got: { name, verdict: `${refused.message}\n${refused.stdout}` } });
  }
}

await writeFile(at("openapi.json"), await (await fetch(`${base}/openapi.json`)).text());
// A summary is the first sentence of a handler's comment. Where it says everything, there is no description. Probes have no
// 4xx, and the document has no contact, because each server has its own operator.
await writeFile(at("redocly.yaml"), 'extends: [recommended]\nrules:\n  operation-4xx-response: off\n  info-license: off\n');
await writeFile(at("spectral.yaml"), 'extends: ["spectral:oas"]\nrules:\n  operation-description: off\n  info-contact: off\n');
await judge("redocly", ["lint", "openapi.json", "--max-problems", "1000"]);
await judge("spectral", ["lint", "openapi.json", "-r", "spectral.yaml", "--fail-severity", "warn"]);
await judge("openapi-typescript", ["openapi.json", "-o", "api.ts"]);
await judge("tsc", ["--noEmit", "--strict", "api.ts"]);
await rm(folder, { recursive: true });
report({ end: "judged" });
