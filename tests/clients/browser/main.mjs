// Follows a run with the EventSource of a real browser. main.mjs BASE {"run_id": …} uses a page of the API's origin.
// main.mjs BASE {"front_end": PORT} uses a page of http://localhost:PORT, which also starts the run.
// main.mjs BASE {"chat": …, "text": …} talks on the page of an example, and reloads it in mid-answer.
import { createServer } from "node:http";

import { chromium } from "playwright-core";

import { follow } from "../event-source.mjs";
import { fold, textOf } from "../fold.mjs";
import { talk } from "./talk.mjs";

const [base, parameters] = process.argv.slice(2);
const { run_id, front_end, chat, text } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium-headless-shell",
  chromiumSandbox: false,
  args: ["--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"],
});
const page = await browser.newPage();
if (chat) {
  report({ end: await talk(page, `${base}/?chat=${chat}`, text) });
  await browser.close();
  process.exit();
}
let path = `/v1/runs/${run_id}`;
if (front_end) {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end("<title>x</title>"));
  await new Promise((listening) => server.listen(front_end, "localhost", listening));
  server.unref();
  await page.goto(`http://localhost:${front_end}`);
  // The headers cause a preflight request, and a page can read `Location` only if the response exposes it.
  path = await page.evaluate(async (base) => {
    const headers = { "content-type": "application/json", "idempotency-key": "once" };
    const body = JSON.stringify({ input: "[tokens=40] [delay=10] hi" });
    return (await fetch(`${base}/v1/runs`, { method: "POST", headers, body })).headers.get("location");
  }, base);
} else {
  await page.goto(base);
}
let pieces = [];
await page.exposeFunction("apply", (event) => {
  pieces = fold(pieces, event);
  report({ got: event });
});
// The page receives the text of the function, so the function must not use its scope.
await page.evaluate(`new Promise((over) => (${follow})(EventSource, "${front_end ? base : ""}${path}/events", apply, over))`);
report({ end: textOf(pieces) });
await browser.close();
