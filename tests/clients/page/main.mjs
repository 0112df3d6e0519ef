// A person before the chat page, in a real browser: main.mjs BASE {"scenario": …, …}
//
// It reports `{"got": {"at": place}}` where the test is to do something, and waits for a line on its standard input where it
// has to know that the test has done so. The scenario asserts the page, and the test asserts the server.
import { createInterface } from "node:readline";

import { chromium } from "playwright-core";

import { options } from "./launch.mjs";
import { Person } from "./person.mjs";
import * as asked from "./asked.mjs";
import * as faults from "./faults.mjs";
import * as looks from "./looks.mjs";
import * as measure from "./measure.mjs";
import * as messages from "./messages.mjs";
import * as pictures from "./pictures.mjs";
import * as safety from "./safety.mjs";
import * as shell from "./shell.mjs";
import * as tabs from "./tabs.mjs";
import * as typing from "./typing.mjs";

const [base, parameters] = process.argv.slice(2);
const given = JSON.parse(parameters);
const scenario = { ...asked, ...faults, ...looks, ...measure, ...messages, ...pictures, ...safety, ...shell, ...tabs, ...typing }[given.scenario];

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const report = (line) => console.log(JSON.stringify(line));
const test = {
  base,
  given,
  /** The test may act now. */
  reach: (at, more = {}) => report({ got: { at, ...more } }),
  /** The test's next message. */
  told: async () => JSON.parse((await lines.next()).value),
};

// A test shares its browser with others; each person has a profile of their own in it.
const browser = given.browser ? await chromium.connect(given.browser) : await chromium.launch(options);
const people = [];
/** Somebody with a browser profile of their own. */
test.person = async (options) => {
  const person = await Person.at(browser, base, test.reach, options);
  people.push(person);
  return person;
};
try {
  const end = await scenario(test);
  for (const person of people) await person.hasSeenNothingStrange();
  report({ end: end ?? null });
} catch (error) {
  console.error(error);
  for (const person of people) console.error(await person.describe());
  process.exitCode = 1;
} finally {
  await browser.close();
  process.stdin.destroy();
}
