// How the page looks: for axe, on a phone, and in the pictures of the documentation.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const axe = await readFile(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Finds nothing that somebody could not use. */
async function isAccessible(tab, what) {
  // What is on its way is neither here nor there.
  await tab.page.evaluate(() => Promise.all(document.getAnimations().filter(({ effect }) => effect.getComputedTiming().iterations !== Infinity).map(({ finished }) => finished.catch(() => {}))));
  await tab.page.evaluate(axe);
  const { violations } = await tab.page.evaluate(() => axe.run(document));
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("\n")}`);
  assert.deepEqual(found, [], what);
}

export async function is_accessible({ person, given }) {
  const tab = await (await person({ colorScheme: given.colours })).open();
  await tab.text("What would you like to find out?").waitFor();
  await isAccessible(tab, "an empty chat");
  await tab.say("[approval=send the report] [tokens=5] hello");
  const card = tab.page.getByRole("group", { name: "Allow approval?" });
  await card.waitFor();
  await isAccessible(tab, "an approval");
  await tab.button("Edit the input", card).click();
  await isAccessible(tab, "an approval that is edited");
  await tab.button("Back", card).click();
  await tab.button("Deny", card).click();
  await isAccessible(tab, "an approval that is denied");
  await tab.button("Deny", card).click();
  await tab.readsToTheEnd();
  await tab.say('[think] [call=scripted__echo {"text": "hi"}] [tokens=5000] [delay=10] hello');
  await tab.answers.nth(1).waitFor();
  await tab.reads(20);
  await isAccessible(tab, "while it streams");
  await tab.stop.click();
  await tab.readsToTheEnd();
  await tab.answer.getByRole("button", { name: /echo/ }).click();
  await isAccessible(tab, "a tool call");
  await tab.say("[tokens=6] [fail] hello");
  await tab.button("Try again").waitFor();
  await isAccessible(tab, "a failure");
  await tab.button("Try again").click();
  await tab.answer.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await isAccessible(tab, "an answer with two versions");
  await tab.act("Edit", tab.questions.last());
  await isAccessible(tab, "a message that is edited");
  await tab.page.keyboard.press("Escape");
  await tab.button("Keyboard shortcuts").click();
  await tab.page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await isAccessible(tab, "the shortcuts");
  await tab.page.keyboard.press("Escape");
  await tab.button("More", tab.page.getByRole("main")).click();
  await tab.page.getByRole("menuitem", { name: "Rename" }).waitFor();
  await isAccessible(tab, "a menu");
}

/** Everything is there, and nothing is wider than the phone. */
export async function fits_on_a_phone({ person }) {
  const tab = await (await person({ width: 360, height: 700, hasTouch: true, isMobile: true })).open();
  const fits = async (what) => assert(await tab.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), what);
  await tab.text("What would you like to find out?").waitFor();
  await fits("an empty chat");
  await tab.say(`[call=scripted__echo {"text": "${"long".repeat(60)}"}] [tokens=80] [delay=1] ${"wide".repeat(60)}`);
  await tab.reads(80);
  await tab.readsToTheEnd();
  await fits("an answer");
  await tab.button("Answer again", tab.answer).click();
  const versions = tab.answer.getByRole("group", { name: "Version 2 of 2" });
  await versions.waitFor();
  await fits("an answer with two versions");
  for (const button of await versions.getByRole("button").all()) {
    const { width, height } = await button.boundingBox();
    assert(Math.min(width, height) >= 44, "fingers can press it");
  }
  await tab.say("[approval=send the report] [tokens=5]");
  const card = tab.page.getByRole("group", { name: "Allow approval?" });
  await card.waitFor();
  await fits("an approval");
  await tab.button("Approve", card).click();
  await tab.readsToTheEnd();
  await isAccessible(tab, "a phone");
  const drawer = tab.page.getByRole("dialog", { name: "Conversations" });
  await tab.button("Show conversations").click();
  await drawer.waitFor();
  await isAccessible(tab, "a phone's list");
  await tab.button("New chat", drawer).click();
  await drawer.waitFor({ state: "detached" });
  await tab.text("What would you like to find out?").waitFor();
  await tab.button("Show conversations").click();
  await drawer.getByRole("link").first().click();
  await drawer.waitFor({ state: "detached" });
  await tab.reads(80, tab.answers.first());
  await fits("a conversation");
}
