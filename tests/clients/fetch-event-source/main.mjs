// Starts and follows a run with the package `@microsoft/fetch-event-source`: main.mjs BASE {"input": …, "key": …}
import { fold, textOf } from "../fold.mjs";
import { start } from "./follow.mjs";

// The package is for browsers, and checks whether the window is hidden.
globalThis.window = globalThis;
globalThis.document = new EventTarget();

const [base, parameters] = process.argv.slice(2);
const { input, key } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

let pieces = [];
await start(`${base}/v1/runs`, input, key, (event) => {
  pieces = fold(pieces, event);
  report({ got: event });
});
report({ end: textOf(pieces) });
