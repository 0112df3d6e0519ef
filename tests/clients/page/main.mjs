// People before the chat page, in a real browser: `main.mjs` runs the scenarios of all tests, and prints its port.
//
// A test opens a connection for each scenario. Its first line is `{"base": …, "scenario": …, …}`. The program reports
// `{"got": {"at": place}}` where the test is to do something, and waits for a line where it has to know that the test has done
// so; `{"end": …}` or `{"failed": …}` is its last line. The scenario asserts the page, and the test asserts the server.
// One program serves all scenarios, because loading the driver of a browser takes longer than most scenarios do.
import { createServer } from "node:net";
import { createInterface } from "node:readline";

import { chromium } from "playwright-core";

import { Person } from "./person.mjs";
import * as asked from "./asked.mjs";
import * as composer from "./composer.mjs";
import * as faults from "./faults.mjs";
import * as files from "./files.mjs";
import * as knowledge from "./knowledge.mjs";
import * as looks from "./looks.mjs";
import * as memories from "./memories.mjs";
import * as measure from "./measure.mjs";
import * as messages from "./messages.mjs";
import * as pictures from "./pictures.mjs";
import * as plans from "./plans.mjs";
import * as previews from "./previews.mjs";
import * as projects from "./projects.mjs";
import * as races from "./races.mjs";
import * as safety from "./safety.mjs";
import * as shell from "./shell.mjs";
import * as tabs from "./tabs.mjs";
import * as typing from "./typing.mjs";
import * as workspace from "./workspace.mjs";

const scenarios = { ...asked, ...composer, ...faults, ...files, ...knowledge, ...looks, ...memories, ...measure, ...messages, ...pictures, ...plans, ...previews, ...projects, ...races, ...safety, ...shell, ...tabs, ...typing, ...workspace };
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium-headless-shell",
  chromiumSandbox: false,
  args: ["--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Runs the scenario of one connection to its end. */
async function run(connection) {
  const lines = createInterface({ input: connection })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value);
  const report = (line) => connection.write(`${JSON.stringify(line)}\n`);
  const people = [];
  const test = {
    /** The test may act now. */
    reach: (at, more = {}) => report({ got: { at, ...more } }),
    /** The test's next message. */
    told: next,
    /** A person with a browser profile of their own. */
    async person(options) {
      const person = await Person.at(browser, test.base, test.reach, options);
      people.push(person);
      return person;
    },
  };
  const leave = () => people.splice(0).map((person) => person.context.close().catch(() => {}));
  // A test that has failed waits for nothing more.
  connection.on("close", leave);
  try {
    const given = await next();
    const end = await scenarios[given.scenario](Object.assign(test, { base: given.base, given }));
    for (const person of people) person.hasSeenNothingStrange();
    report({ end: end ?? null });
  } catch (error) {
    const screens = await Promise.all(people.map((person) => person.describe().catch(String)));
    report({ failed: [error.stack, ...screens].join("\n") });
  }
  await Promise.all(leave());
  connection.end();
}

const server = createServer((connection) => {
  connection.on("error", () => {});
  void run(connection);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
// The program ends with its standard input.
process.stdin.on("end", () => process.exit()).resume();
