// Pages that are left and come back, and several of them at once.
import assert from "node:assert/strict";

/** An answer so long that only a stop ends it during the scenario, and short enough for the context of the next one. */
const ENDLESS = "[think] [tokens=1500] [delay=50] hello";

/** A reload in the middle shows the answer so far, and continues. */
export async function reloads({ person }) {
  const tab = await (await person()).open();
  await tab.say(ENDLESS);
  await tab.reads(40);
  await tab.page.reload();
  await tab.answer.filter({ hasText: "This is" }).waitFor();
  const [shown] = await tab.shown();
  assert.match(shown, /^This is Holdfast's/);
  assert.match(shown, /[a-z]40\b/);
  const count = Number(/\d+$/.exec(shown)[0]);
  await tab.reads(count + 40);
  await tab.stop.click();
  await tab.readsToTheEnd();
  return { shown: await tab.shown(), conversation: await tab.conversation() };
}

/** A reload in mid-answer shows the answer and, below it, the messages that wait; one is taken back, and a stop leaves the other. */
export async function reloads_with_waiting_messages({ person }) {
  const me = await person();
  const tab = await me.open();
  const waiting = (tab, text) => tab.page.getByRole("article", { name: "Waiting message" }).filter({ hasText: text });
  await tab.say("[tokens=2000] [delay=30] first");
  await tab.reads(20);
  for (const text of ["[tokens=5] second", "[tokens=5] third"]) {
    await tab.field.fill(text);
    await tab.field.press("Control+Enter");
    await waiting(tab, text).waitFor();
  }
  const other = await me.open(`/c/${await tab.conversation()}`);
  await tab.page.reload();
  for (const page of [tab, other]) {
    await page.reads(20);
    await waiting(page, "second").waitFor();
    await waiting(page, "third").waitFor();
    assert.equal(await page.questions.count(), 1);
  }
  await tab.button("Take back", waiting(tab, "third")).click();
  await waiting(tab, "third").waitFor({ state: "detached" });
  await tab.stop.click();
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  await waiting(tab, "second").waitFor({ state: "detached" });
}

/** An answer that one tab has started is live in all others, also in older ones. */
export async function reads_in_two_tabs({ person }) {
  const me = await person();
  const first = await me.open();
  await first.say(ENDLESS);
  await first.reads(20);
  const second = await me.open(`/c/${await first.conversation()}`);
  await second.reads(40);
  await first.reads(40);
  await second.stop.click();
  await Promise.all([first.readsToTheEnd(), second.readsToTheEnd()]);
  assert.deepEqual(await second.shown(), await first.shown());
  // The other way round: the first one only looks on.
  await second.say(ENDLESS);
  await first.answers.nth(1).waitFor();
  await first.reads(20);
  await first.stop.click();
  await Promise.all([first.readsToTheEnd(), second.readsToTheEnd()]);
  assert.deepEqual(await second.shown(), await first.shown());
  return { shown: await first.shown() };
}

/** A stop ends the run, and what was said stays. */
export async function stops({ person }) {
  const tab = await (await person()).open();
  await tab.say(ENDLESS);
  await tab.reads(30);
  await tab.stop.click();
  await tab.readsToTheEnd();
  const said = await tab.shown();
  await tab.page.reload();
  await tab.readsToTheEnd();
  assert.deepEqual(await tab.shown(), said);
  assert.equal(await tab.text(/Try again|Reconnecting/).count(), 0);
  return { shown: said };
}
