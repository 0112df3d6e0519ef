// Compiles the package of clients/ag-ui, whose packages are those of this folder.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import ts from "typescript";

const source = new URL("../../../clients/ag-ui/src/", import.meta.url);
const compiled = new URL("compiled/", import.meta.url);

/** Returns the class `ResumableHttpAgent`. */
export async function resumableAgent() {
  mkdirSync(compiled, { recursive: true });
  const folder = mkdtempSync(new URL("part-", compiled).pathname);
  for (const name of readdirSync(source)) {
    const options = { module: ts.ModuleKind.ES2022, target: ts.ScriptTarget.ES2022 };
    const { outputText } = ts.transpileModule(readFileSync(new URL(name, source), "utf8"), { compilerOptions: options });
    const file = name.replace(/\.ts$/, ".js");
    writeFileSync(`${folder}/${file}`, outputText);
    // Other programs may be running in this folder.
    renameSync(`${folder}/${file}`, new URL(file, compiled).pathname);
  }
  return (await import(new URL("index.js", compiled).href)).ResumableHttpAgent;
}
