// Follows a run with the EventSource of a real browser, in a page of the API's own: main.mjs BASE {"run_id": …}
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { follow } from "../event-source.mjs";

const [base, parameters] = process.argv.slice(2);
const { run_id } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

const folder = mkdtempSync(join(tmpdir(), "holdfast-browser-"));
const browser = await chromium.launchPersistentContext(folder, {
  executablePath: "/usr/bin/chromium",
  chromiumSandbox: false,
  args: ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
});
const page = await browser.newPage();
await page.goto(base);
await page.exposeFunction("show", (event) => report({ got: event }));
// The page has the function as its text: it must need nothing from around it.
const answer = await page.evaluate(`new Promise((over) => {
  let answer;
  const keep = (event, text) => { answer = text; show(event); };
  (${follow})(EventSource, "/v1/runs/${run_id}/events", keep, () => over(answer));
})`);
report({ end: answer });
await browser.close();
rmSync(folder, { recursive: true, force: true });
