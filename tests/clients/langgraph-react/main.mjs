// People before a page with LangChain's useStream, in a real browser: `main.mjs` builds the page, runs the scenarios of all tests, and
// prints its port.
//
// A test opens a connection for each scenario. Its first line is `{"base": …, "scenario": …, …}`. The program reports
// `{"got": {"at": place}}`, and `{"end": …}` or `{"failed": …}` as its last line.
import { createServer } from "node:net";
import { createInterface } from "node:readline";

import { chromium } from "playwright-core";

import * as scenarios from "./scenarios.mjs";
import { Site } from "./site.mjs";

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium-headless-shell",
  chromiumSandbox: false,
  args: ["--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Runs the scenario of one connection to its end. */
async function run(connection) {
  const lines = createInterface({ input: connection })[Symbol.asyncIterator]();
  const report = (line) => connection.write(`${JSON.stringify(line)}\n`);
  const given = JSON.parse((await lines.next()).value);
  const site = await Site.before(given.base);
  const context = await browser.newContext({ baseURL: site.origin, locale: "en-GB", reducedMotion: "reduce" });
  context.setDefaultTimeout(60_000);
  // A request to any other site ends at once.
  await context.route((url) => url.origin !== site.origin && url.protocol.startsWith("http"), (route) => route.abort());
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`an error: ${error} ${error.stack}`));
  // The browser reports a cut stream.
  page.on("console", (message) => message.type() === "error" && !/net::ERR_/.test(message.text()) && faults.push(`on the console: ${message.text()}`));
  try {
    const end = await scenarios[given.scenario]({ page, site, given, reach: (at) => report({ got: { at } }) });
    if (faults.length) throw new Error("The page has faults.");
    report({ end: { ...end, requests: site.requests } });
  } catch (error) {
    report({ failed: [error.stack, ...faults, JSON.stringify(site.requests), await page.locator("body").ariaSnapshot().catch(String)].join("\n") });
  }
  await context.close();
  await site.stop();
  connection.end();
}

const server = createServer((connection) => {
  connection.on("error", () => {});
  void run(connection);
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
// The program ends with its standard input.
process.stdin.on("end", () => process.exit()).resume();
