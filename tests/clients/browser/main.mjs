// Follows a run with the EventSource of a real browser, in a page of the API's own: main.mjs BASE {"run_id": …}
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { follow } from "../event-source.mjs";
import { fold } from "../fold.mjs";

const [base, parameters] = process.argv.slice(2);
const { run_id } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

const folder = mkdtempSync(join(tmpdir(), "holdfast-browser-"));
const browser = await chromium.launchPersistentContext(folder, {
  executablePath: "/usr/bin/chromium",
  chromiumSandbox: false,
  args: ["--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"],
});
const page = await browser.newPage();
await page.goto(base);
let answer;
await page.exposeFunction("apply", (event) => {
  answer = fold(event);
  report({ got: event });
});
await page.evaluate(`new Promise((over) => (${follow})(EventSource, "/v1/runs/${run_id}/events", apply, over))`);
report({ end: answer });
await browser.close();
rmSync(folder, { recursive: true, force: true });
