// The way of a message from the field to the server: double clicks, refusals, lost responses, other tabs.
import assert from "node:assert/strict";

/** An answer so long that only a stop ends it during the scenario. */
const ENDLESS = "[tokens=3000] [delay=50] hello";

const waiting = (tab) => tab.page.getByRole("article", { name: "Waiting message" });
const stopped = (tab) => tab.text("You stopped this answer.", tab.log);
const has = (tab, text) => tab.page.waitForFunction((text) => document.querySelector("#compose")?.value === text, text);

/** Calls `act` for each message that the tab posts beside an answer. */
const onPost = (tab, act) =>
  tab.page.route(/\/v1\/conversations\/[0-9a-f-]+\/messages$/, (route) => (route.request().method() === "POST" ? act(route) : route.continue()));

const refuse = (route) =>
  route.fulfill({ status: 400, contentType: "application/problem+json", body: JSON.stringify({ status: 400, code: "content_too_long", detail: "The content has at most 1 byte." }) });

/** Stop takes the place of Send, and the second click of a double click on Send does not count for it. */
export async function sends_with_a_double_click({ person }) {
  const tab = await (await person()).open();
  for (const count of [1, 2]) {
    await tab.field.fill("[tokens=30] [delay=20] hello");
    await tab.send.dblclick();
    await tab.answers.nth(count - 1).waitFor();
    await tab.reads(30);
    await tab.readsToTheEnd();
  }
  await tab.say(ENDLESS);
  await tab.answers.nth(2).waitFor();
  await tab.reads(20);
  await tab.field.fill("and this");
  await tab.send.dblclick();
  await waiting(tab).waitFor();
  await tab.reads(40);
  assert.equal(await stopped(tab).count(), 0);
  // The keyboard stops at once.
  await tab.button("Take back").click();
  await has(tab, "and this");
  await tab.field.fill("");
  await tab.stop.press("Enter");
  await stopped(tab).waitFor();
}

/** The return key of a phone breaks the line, in the field and in an edit, and the buttons send. */
export async function writes_lines_on_a_phone({ person }) {
  const tab = await (await person({ width: 390, height: 844, hasTouch: true, isMobile: true })).open();
  const write = async (field) => {
    await field.pressSequentially("Buy:");
    await field.press("Enter");
    await field.pressSequentially("- milk");
    assert.match(await field.inputValue(), /Buy:\n- milk$/);
  };
  await write(tab.field);
  assert.equal(await tab.questions.count(), 0);
  await tab.send.tap();
  await tab.readsToTheEnd();
  await tab.button("Edit", tab.questions).tap();
  const edit = tab.questions.getByRole("textbox", { name: "Edit your message" });
  await edit.fill("");
  await write(edit);
  await tab.button("Cancel", tab.questions).tap();
  assert.equal(await tab.answers.count(), 1);
}

/**
 * Stop ends the answer at work; the messages that wait are answered after it, one more comes back to the field when asked.
 * A stop right after a message does not reach that message's answer.
 */
export async function stops_one_answer({ person }) {
  const tab = await (await person()).open();
  await tab.say(ENDLESS);
  await tab.reads(20);
  for (const text of ["[tokens=5] second", "[tokens=5] back", "[tokens=5] third"]) {
    await tab.field.fill(text);
    await tab.field.press("Control+Enter");
    await waiting(tab).filter({ hasText: text }).waitFor();
  }
  await tab.button("Take back", waiting(tab).filter({ hasText: "] back" })).click();
  await has(tab, "[tokens=5] back");
  await tab.field.fill("[tokens=5] fourth");
  await tab.field.press("Control+Enter");
  await tab.stop.press("Enter");
  await tab.questions.filter({ hasText: "fourth" }).waitFor();
  await tab.answers.nth(3).getByRole("group", { name: "Message actions" }).waitFor();
  assert.equal(await stopped(tab).count(), 1);
  await tab.page.reload();
  await tab.answers.nth(3).waitFor();
  assert.equal(await stopped(tab).count(), 1);
  return { conversation: await tab.conversation() };
}

/** A message is stopped before the page knows its run; the next one is answered, however late the stop arrives. */
export async function stops_right_after_sending({ person }) {
  const tab = await (await person()).open();
  const held = new Promise((hold) => void tab.page.route(/\/stop(\?|$)/, hold, { times: 1 }));
  await tab.field.fill("[tokens=30] [delay=20] first");
  await tab.send.click();
  await tab.stop.press("Enter");
  const stop = await held;
  await tab.readsToTheEnd();
  await tab.say("[tokens=60] [delay=40] second");
  await tab.answers.nth(1).waitFor();
  await tab.reads(15);
  // The reader's page has dropped this stop, and the network brings it nevertheless.
  const address = stop.request().url();
  assert.match(address, /\?runId=/);
  const { success } = await (await fetch(address, { method: "POST" })).json();
  assert.ok(success);
  await tab.reads(60);
  await tab.readsToTheEnd();
  assert.equal(await stopped(tab).count(), 0);
}

/** The second click of a double click on "Take back" takes nothing back. */
export async function takes_back_with_a_double_click({ person }) {
  const tab = await (await person()).open();
  let calls = 0;
  tab.page.on("request", (request) => (calls += request.url().endsWith("/take_back") ? 1 : 0));
  await tab.say(ENDLESS);
  await tab.reads(20);
  await tab.field.fill("second");
  await tab.field.press("Control+Enter");
  await tab.button("Take back").dblclick();
  await has(tab, "second");
  assert.equal(calls, 1);
  await tab.stop.click();
  await tab.readsToTheEnd();
}

/** A message beside an answer is in flight when its writer leaves the chat: refused, it is the chat's draft again. */
export async function leaves_before_a_refusal({ person }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=3] other");
  await tab.readsToTheEnd();
  await tab.button("New chat", tab.list).click();
  await tab.say(ENDLESS);
  await tab.reads(20);
  const chat = await tab.conversation();
  const other = tab.list.getByRole("link", { name: "[tokens=3] other" });

  const leave = async (text) => {
    // Without an answer, the page sends a message by itself.
    await tab.stop.waitFor();
    const held = new Promise((hold) => void onPost(tab, hold));
    const posted = tab.page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/messages"));
    await tab.field.fill(text);
    await tab.field.press("Control+Enter");
    await posted;
    const route = await held;
    await other.click();
    await tab.text("[tokens=3] other", tab.questions).waitFor();
    await has(tab, "");
    await tab.page.unroute(/messages$/);
    return route;
  };
  const kept = (text) => tab.page.waitForFunction(([chat, text]) => JSON.parse(localStorage.getItem("holdfast.drafts") ?? "{}")[chat]?.text === text, [chat, text]);

  await refuse(await leave("refused"));
  await kept("refused");
  await tab.page.goBack();
  await tab.page.waitForURL(`/c/${chat}`);
  await has(tab, "refused");
  // A message that arrives is no draft any more.
  const route = await leave("[tokens=5] accepted");
  await kept("[tokens=5] accepted");
  await route.continue();
  await kept(undefined);
  await tab.page.goBack();
  await tab.text("[tokens=5] accepted", tab.log).waitFor();
  assert.equal(await tab.field.inputValue(), "");
  await tab.stop.click();
  await tab.text("[tokens=5] accepted", tab.questions).waitFor();
  return { conversation: chat };
}

/** A message beside an answer arrives once: without the first response, and after a time without a network. */
export async function posts_once({ person }) {
  const me = await person();
  const tab = await me.open();
  await tab.say(ENDLESS);
  await tab.reads(20);
  const keys = [];
  await onPost(tab, async (route) => {
    keys.push(route.request().headers()["idempotency-key"]);
    if (keys.length > 1) return route.continue();
    await route.fetch();
    return route.abort("connectionreset");
  });
  await tab.field.fill("[tokens=5] second");
  await tab.field.press("Control+Enter");
  await waiting(tab).getByText("Will be answered next.").waitFor();
  assert.deepEqual([await waiting(tab).count(), keys.length, keys[0]], [1, 2, keys[1]]);
  assert.equal(await tab.field.inputValue(), "");

  await me.context.setOffline(true);
  await tab.field.fill("[tokens=5] third");
  await tab.field.press("Control+Enter");
  const held = waiting(tab).filter({ hasText: "Not sent yet. The page sends it as soon as the server can be reached." });
  await held.getByText("[tokens=5] third").waitFor();
  // Its writer may take it back before it arrives.
  await tab.button("Take back", held).click();
  await has(tab, "[tokens=5] third");
  await tab.field.press("Control+Enter");
  await held.waitFor();
  assert.equal(await tab.field.inputValue(), "");
  await me.context.setOffline(false);
  await held.waitFor({ state: "detached" });
  await waiting(tab).getByText("[tokens=5] third").waitFor();
  await tab.stop.click();
  await tab.answers.nth(2).getByRole("group", { name: "Message actions" }).waitFor();
  await tab.text("[tokens=5] third", tab.questions).waitFor();
  assert.equal(await tab.questions.count(), 3);
  return { conversation: await tab.conversation() };
}

/** Each tab keeps the draft that its reader has written there. */
export async function writes_in_two_tabs({ person }) {
  const me = await person();
  const one = await me.open();
  await one.field.fill("draft of one");
  // A new tab begins with the draft, and its reader sends another text.
  const other = await me.open();
  await has(other, "draft of one");
  await other.say("[tokens=3] hello");
  await other.readsToTheEnd();
  await one.page.reload();
  await has(one, "draft of one");

  const path = `/c/${await other.conversation()}`;
  await one.page.goto(path);
  await one.readsToTheEnd();
  await one.field.fill("answer of one");
  await other.field.fill("[tokens=3] again");
  // The tab has its own draft after a reload, although the other one has another draft.
  await other.page.reload();
  await has(other, "[tokens=3] again");
  // The page sends nothing before it knows what the conversation has.
  await other.readsToTheEnd();
  await other.field.press("Enter");
  await other.answers.nth(1).waitFor();
  await other.readsToTheEnd();
  await one.page.reload();
  await has(one, "answer of one");
}
