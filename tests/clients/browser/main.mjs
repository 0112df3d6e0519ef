// Follows a run with the EventSource of a real browser, in a page of the API's own: main.mjs BASE {"run_id": …}
import { chromium } from "playwright-core";

import { follow } from "../event-source.mjs";
import { fold, textOf } from "../fold.mjs";

const [base, parameters] = process.argv.slice(2);
const { run_id } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  chromiumSandbox: false,
  args: ["--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"],
});
const page = await browser.newPage();
await page.goto(base);
let pieces = [];
await page.exposeFunction("apply", (event) => {
  pieces = fold(pieces, event);
  report({ got: event });
});
// The page is given the function as its text, so it must need nothing from around it.
await page.evaluate(`new Promise((over) => (${follow})(EventSource, "/v1/runs/${run_id}/events", apply, over))`);
report({ end: textOf(pieces) });
await browser.close();
