// Answers that are streamed, whatever breaks meanwhile, and what is said of what went wrong.
import assert from "node:assert/strict";

/** The page's state, which the test compares with the server's. */
const seen = async (tab) => ({ shown: await tab.shown(), conversation: await tab.conversation() });

/** One question and its answer. */
export async function streams({ person, given, reach }) {
  const tab = await (await person()).open();
  await tab.say(given.text);
  await tab.reads(20);
  reach("answering");
  await tab.readsToTheEnd();
  return seen(tab);
}

/** A worker dies, and another one makes the answer again. */
export async function retries({ person, given, reach }) {
  const tab = await (await person()).open();
  await tab.record("retrying");
  await tab.say(given.text);
  await tab.reads(20);
  reach("answering");
  await tab.hasShown("Something went wrong on the server; retrying (2 of 3)");
  await tab.readsToTheEnd();
  assert.equal(await tab.text(/retrying|Reconnecting/).count(), 0);
  return seen(tab);
}

/** The server goes away and comes back. */
export async function reconnects({ person, given, reach }) {
  const tab = await (await person()).open();
  await tab.say(given.text);
  await tab.reads(20);
  reach("answering");
  await tab.text("Reconnecting…").waitFor();
  await tab.reads(20);
  reach("reconnecting");
  await tab.readsToTheEnd();
  assert.equal(await tab.text(/retrying|Reconnecting|Try again/).count(), 0);
  return seen(tab);
}

/** A message that is said while the server is away stays among the messages as not sent yet, and the page sends it once. */
export async function keeps_what_cannot_be_sent({ person, reach, told }) {
  const tab = await (await person()).open();
  await tab.text("What would you like to find out?").waitFor();
  reach("open");
  await told();
  await tab.say("[tokens=30] hello");
  await tab.text("Not sent yet. The page sends it as soon as the server can be reached.", tab.log).waitFor();
  await tab.text("[tokens=30] hello", tab.questions).waitFor();
  assert.equal(await tab.text(/Thinking|Reconnecting|Answering|Try again|was not sent/).count(), 0);
  // It is still there for somebody who goes and comes back.
  await tab.button("New chat", tab.list).click();
  await tab.text("[tokens=30] hello", tab.questions).waitFor();
  assert.equal(await tab.field.inputValue(), "");
  reach("unsent");
  await tab.reads(30);
  await tab.readsToTheEnd();
  assert.deepEqual([await tab.questions.count(), await tab.text(/Not sent/).count()], [1, 0]);
  return seen(tab);
}

/** The connection is there and says nothing any more. */
export async function waits_for_a_silent_server({ person, given, reach, told }) {
  const tab = await (await person({ withClock: true })).open();
  await tab.record("Reconnecting…");
  await tab.say(given.text);
  await tab.reads(20);
  reach("answering");
  await told();
  // Longer than the page waits for a heartbeat.
  await tab.page.clock.fastForward(46_000);
  await tab.hasShown("Reconnecting…");
  await tab.readsToTheEnd();
  return seen(tab);
}

/** The text of a failed run stays, and the reader can ask for the answer again. */
export async function is_told_of_a_failure({ person, reach }) {
  const tab = await (await person()).open();
  const trouble = tab.text("The answer could not be finished. The text so far is kept.");
  await tab.say("[tokens=40] [delay=30] [fail] hello");
  await tab.reads(15);
  await trouble.waitFor();
  await tab.page.reload();
  await trouble.waitFor();
  await tab.reads(15);
  const first = await tab.shown();
  reach("failed");
  await tab.button("Try again").click();
  await tab.answer.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await tab.reads(15);
  await trouble.waitFor();
  assert.deepEqual(await tab.shown(), first);
  assert.equal(await tab.questions.count(), 1);
}

/** Too many messages: when one may try again, and that it works then. */
export async function is_told_when_to_try_again({ person, reach, told }) {
  const tab = await (await person({ withClock: true })).open();
  await tab.say("[tokens=2] first");
  await tab.readsToTheEnd();
  await tab.say("[tokens=3] second");
  await tab.text("Too many messages in a short time.", tab.log).waitFor();
  const retry = tab.page.getByRole("button", { name: /^Try again in / });
  assert(await retry.isDisabled());
  assert.match(await retry.textContent(), /^Try again in \d+ s|^Try again in 1 min/);
  // The refused text is in the field again.
  assert.equal(await tab.field.inputValue(), "[tokens=3] second");
  reach("limited");
  await told();
  await tab.page.clock.fastForward(61_000);
  await tab.button("Try again").click();
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  assert.equal(await tab.field.inputValue(), "");
  assert.equal(await tab.questions.count(), 2);
}

/** A message that is too long: the limit is named, and the notice goes when the message fits. */
export async function is_told_the_limit({ person }) {
  const tab = await (await person()).open();
  const notice = tab.text("Not sent yet. The message is too long: the limit is 1 KiB.", tab.log);
  await tab.say(`[tokens=5] ${"x".repeat(1_100)}`);
  await notice.waitFor();
  assert.equal(await tab.page.getByRole("button", { name: /^Try again/ }).count(), 0);
  await tab.field.fill(`[tokens=5] ${"x".repeat(1_090)}`);
  await notice.waitFor();
  await tab.field.fill("[tokens=5] short");
  await notice.waitFor({ state: "detached" });
  await tab.field.press("Enter");
  await tab.readsToTheEnd();
  assert.equal(await tab.questions.count(), 1);
}

/** Nothing but that it works, and then the whole. */
export async function waits_for_the_whole({ person }) {
  const tab = await (await person()).open();
  await tab.choose("tester");
  await tab.record("scripted model");
  await tab.say("[tokens=60] [delay=20] hello");
  await tab.stop.waitFor();
  await tab.text("Thinking…", tab.log).waitFor();
  await tab.readsToTheEnd();
  const pieces = (await tab.recorded()).filter((text) => !/[a-z]60/.test(text));
  assert.deepEqual(pieces, []);
  return seen(tab);
}

/** A server in memory may lose its conversations, and the page says so. */
export async function is_warned_of_what_may_be_lost({ person }) {
  const tab = await (await person()).open();
  const caution = tab.text("Messages here may be lost when the server stops.");
  await caution.waitFor();
  await tab.button("Why").click();
  await tab.text(/kept in memory/).waitFor();
  await tab.say("[tokens=5] hello");
  await tab.readsToTheEnd();
  await tab.text("This conversation is not saved: it is lost when the server stops.").waitFor();
  await tab.button("Hide this notice").click();
  await caution.waitFor({ state: "detached" });
}
