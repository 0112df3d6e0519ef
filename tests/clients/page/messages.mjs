// Work with messages, also with many of them.
import assert from "node:assert/strict";

import { hasFocus } from "./asking.mjs";

/** Edits a message, has it answered again, copies it, and continues from it in another conversation. */
export async function works_with_messages({ person }) {
  const me = await person();
  await me.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const tab = await me.open();
  const clipboard = () => tab.page.evaluate(() => navigator.clipboard.readText());
  await tab.say("[tokens=20] first");
  await tab.reads(20);
  await tab.readsToTheEnd();
  await tab.act("Edit", tab.questions);
  const edited = tab.page.getByRole("textbox", { name: "Edit your message" });
  assert.equal(await edited.inputValue(), "[tokens=20] first");
  // Esc closes the edit and keeps what was typed.
  await edited.fill("[tokens=25] sec");
  await edited.press("Escape");
  await edited.waitFor({ state: "detached" });
  await tab.act("Edit", tab.questions);
  assert.equal(await edited.inputValue(), "[tokens=25] sec");
  await edited.fill("[tokens=25] second");
  await tab.button("Send", tab.questions).click();
  await tab.reads(25);
  await tab.readsToTheEnd();
  assert.equal(await tab.questions.count(), 1);
  await tab.text("[tokens=25] second", tab.questions).waitFor();
  assert.equal(await tab.answers.count(), 1);

  await tab.act("Copy", tab.answer);
  await tab.button("Copied", tab.answer).waitFor();
  assert.equal(await clipboard(), (await tab.shown())[0]);
  await tab.act("Copy", tab.questions);
  await tab.button("Copied", tab.questions).waitFor();
  assert.equal(await clipboard(), "[tokens=25] second");

  const again = tab.page.waitForResponse((response) => response.url().endsWith("/api/chat"));
  await tab.act("Answer again", tab.answer);
  assert.equal((await again).status(), 200);
  await tab.reads(25);
  await tab.readsToTheEnd();
  assert.deepEqual([await tab.questions.count(), await tab.answers.count()], [1, 1]);

  const before = await tab.conversation();
  const name = await tab.page.getByRole("heading", { level: 1 }).textContent();
  await tab.act("Continue from here in a new conversation", tab.answer);
  await tab.page.waitForURL((url) => url.pathname.startsWith("/c/") && !url.pathname.endsWith(before));
  await tab.readsToTheEnd();
  await tab.button(`Continues “\u2068${name}\u2069”`).waitFor();
  await tab.say("[tokens=30] third");
  await tab.answers.nth(1).waitFor();
  await tab.reads(30);
  await tab.readsToTheEnd();
  const fork = await tab.conversation();
  await tab.page.goBack();
  await tab.page.waitForURL(`/c/${before}`);
  await tab.reads(25);
  await tab.readsToTheEnd();
  assert.deepEqual([await tab.questions.count(), await tab.answers.count()], [1, 1]);
  return { before, fork };
}

/** Goes back to what an edit and another answer have replaced, and forward again; another tab shows each step. */
export async function goes_through_versions({ person }) {
  const me = await person();
  const tab = await me.open();
  const edited = tab.page.getByRole("textbox", { name: "Edit your message" });
  const edit = async (text) => {
    await tab.act("Edit", tab.questions.first());
    await edited.fill(text);
    await tab.button("Send", tab.questions.first()).click();
    await edited.waitFor({ state: "detached" });
  };
  await tab.say("[tokens=20] first");
  await tab.reads(20);
  await tab.readsToTheEnd();
  assert.equal(await versions(tab.page).count(), 0);
  await tab.say("[tokens=5] more");
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  const before = await tab.shown();
  await edit("[tokens=25] second");
  await tab.reads(25);
  await tab.readsToTheEnd();
  await shows(tab.questions, "Version 2 of 2");
  assert.equal(await versions(tab.answer).count(), 0);
  const after = await tab.shown();

  // The undo: the old question, the old answer, and what followed them.
  const previous = tab.button("Previous version", tab.questions.first());
  const next = tab.button("Next version", tab.questions.first());
  await previous.press("Enter");
  await shows(tab.questions.first(), "Version 1 of 2");
  await tab.text("[tokens=20] first", tab.questions.first()).waitFor();
  assert.deepEqual(await tab.shown(), before);
  assert.equal(await previous.getAttribute("aria-disabled"), "true");
  await hasFocus(previous);
  await tab.page.reload();
  await shows(tab.questions.first(), "Version 1 of 2");
  assert.deepEqual(await tab.shown(), before);

  // The undo of the undo.
  const other = await me.open(`/c/${await tab.conversation()}`);
  await shows(other.questions.first(), "Version 1 of 2");
  await next.click();
  await shows(tab.questions, "Version 2 of 2");
  await tab.text("[tokens=25] second", tab.questions).waitFor();
  assert.deepEqual(await tab.shown(), after);
  await shows(other.questions, "Version 2 of 2");
  assert.deepEqual(await other.shown(), after);

  // Another answer is another element, and the focus goes along.
  const id = (answer) => answer.getAttribute("data-id");
  const first = await id(tab.answer);
  await tab.act("Answer again", tab.answer);
  await shows(tab.answer, "Version 2 of 2");
  const second = await id(tab.answer);
  assert.notEqual(second, first);
  await tab.button("Previous version", tab.answer).press("Enter");
  await shows(tab.answer, "Version 1 of 2");
  assert.equal(await id(tab.answer), first);
  await hasFocus(tab.button("Previous version", tab.answer));
  await tab.button("Next version", tab.answer).press("Enter");
  await shows(tab.answer, "Version 2 of 2");
  assert.equal(await id(tab.answer), second);
  await hasFocus(tab.button("Next version", tab.answer));
  await tab.button("Previous version", tab.answer).click();
  await shows(tab.answer, "Version 1 of 2");
  // The question's versions are what they were.
  await shows(tab.questions, "Version 2 of 2");
  await shows(other.answer, "Version 1 of 2");

  // A stopped answer is a version, too, and the reader cannot switch while it streams.
  await edit("[tokens=1500] [delay=50] third");
  await tab.reads(20);
  assert.equal(await versions(tab.page).count(), 0);
  await tab.stop.click();
  await tab.readsToTheEnd();
  await shows(tab.questions, "Version 3 of 3");

  // A restoration is activity, so the conversation is then the first of the list.
  const newest = tab.list.getByRole("listitem").first();
  await other.button("New chat", other.list).click();
  await other.say("[tokens=5] newer");
  await other.readsToTheEnd();
  await tab.text("[tokens=5] newer", newest).waitFor();
  // Without a run at work, the page does not poll the list.
  await tab.list.getByRole("img", { name: "in progress" }).waitFor({ state: "detached" });
  await previous.click();
  await shows(tab.questions, "Version 2 of 3");
  await shows(tab.answer, "Version 1 of 2");
  assert.deepEqual(await tab.shown(), after);
  await newest.locator(`a[href="/c/${await tab.conversation()}"]`).waitFor();
  return { conversation: await tab.conversation(), answer: first };
}

const versions = (within) => within.getByRole("group", { name: /^Version \d+ of \d+$/ });

/** Waits until a message is this version, and says so. */
async function shows(message, name) {
  const group = message.getByRole("group", { name, exact: true });
  await group.getByText(name.replace(/Version (\d+) of (\d+)/, "$1/$2"), { exact: true }).waitFor();
}

/**
 * A conversation of more messages than the server gives at once: the reader scrolls to earlier ones, which move nothing, goes
 * to the beginning by a key, and a search leads to a message that the page has not read.
 */
export async function reaches_the_beginning({ person, given }) {
  const me = await person();
  const tab = await me.open(`/c/${given.conversation}`);
  const message = (number) => tab.log.getByText(new RegExp(`^message ${number}, `));
  const drawn = () => tab.page.locator("article").count();
  await message(given.messages).waitFor();
  assert(await isInView(message(given.messages)));
  const before = await drawn();
  assert(before < given.messages / 2, `${before} messages at once`);
  const onPaper = tab.log.getByText("This conversation begins earlier");
  assert(!(await onPaper.isVisible()));
  await tab.page.emulateMedia({ media: "print" });
  assert(await onPaper.isVisible());
  await tab.page.emulateMedia({ media: "screen" });
  const old = tab.page.locator(`article[data-id]`).first();
  await tab.page.waitForFunction(() => document.querySelectorAll("article").length >= 200);
  await old.scrollIntoViewIfNeeded();
  const seen = await tab.page.locator("article").first().elementHandle();
  await seen.evaluate((element) => element.scrollIntoView({ block: "start" }));
  await tab.page.waitForFunction((seen) => document.querySelector("article") !== seen, seen);
  assert(await seen.evaluate((element) => element.getBoundingClientRect().bottom > 0 && element.getBoundingClientRect().top < innerHeight), "earlier messages move what the reader sees");

  await tab.log.focus();
  await tab.page.keyboard.press("Home");
  await inView(message(1));
  const numbers = await tab.page.locator("article").evaluateAll((articles) => articles.map((article) => Number(/message (\d+),/.exec(article.textContent)[1])));
  assert.deepEqual(numbers, [...new Set(numbers)].sort((one, other) => one - other), "each message once, in their order");
  assert.deepEqual([numbers.at(0), numbers.at(-1)], [1, given.messages]);

  // Typing changes no drawn message.
  await tab.page.evaluate(() => {
    globalThis.changes = 0;
    const count = (records) => (changes += records.length);
    for (const message of document.querySelectorAll("article")) new MutationObserver(count).observe(message, { attributes: true, childList: true, characterData: true, subtree: true });
  });
  await tab.field.pressSequentially("typing");
  assert.equal(await tab.page.evaluate(() => changes), 0);
  await tab.page.close();

  const other = await me.open();
  await hasFocus(other.field);
  await other.page.keyboard.press("Control+k");
  await hasFocus(other.list.getByRole("searchbox"));
  await other.page.keyboard.type("qoukka");
  await other.page.keyboard.press("Enter");
  await other.page.waitForURL(/#/);
  const found = other.log.getByText("message 11, **quokka**");
  await inView(found);
  await other.page.locator("article[data-found]").waitFor();
  await other.answers.first().waitFor();
  // A sent message leads to the end.
  await other.say("[tokens=20] more");
  await other.reads(20);
  await other.readsToTheEnd();
  assert(await isInView(other.answer));
}

/** A long conversation opens at its end, and all of it is there. */
export async function reads_a_long_conversation({ person, given }) {
  const tab = await (await person()).open(`/c/${given.conversation}`);
  await tab.text(`[tokens=1] question ${given.questions}`, tab.questions).waitFor();
  assert(await isInView(tab.questions.last()));
  await tab.log.focus();
  await tab.page.keyboard.press("Home");
  await tab.page.waitForFunction((count) => document.querySelectorAll("article").length === count, given.questions * 2);
  const first = tab.questions.first().getByText("[tokens=1] question 1", { exact: true });
  await inView(first);
  // By its text, because by its role the driver would take ten seconds to find it among a thousand other buttons.
  const latest = tab.page.getByText("Jump to latest", { exact: true });
  await latest.click();
  await inView(tab.answer);
  await latest.waitFor({ state: "detached" });
  await tab.say("[tokens=20] more");
  await tab.reads(20);
  await tab.readsToTheEnd();
  assert(await isInView(tab.answer));
}

/** A reader who has scrolled up stays there, and can jump to the end. */
export async function scrolls_while_it_streams({ person }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=700] [delay=1] first");
  await tab.reads(700);
  await tab.readsToTheEnd();
  await tab.say("[tokens=3000] [delay=10] second");
  await tab.answers.nth(1).waitFor();
  await tab.reads(300);
  // The end is followed.
  const top = () => tab.log.evaluate((log) => log.scrollTop);
  const isAtEnd = () => tab.log.evaluate((log) => log.scrollHeight - log.clientHeight - log.scrollTop < 2);
  await tab.log.hover();
  await tab.page.mouse.wheel(0, -600);
  const latest = tab.button("Jump to latest");
  await latest.waitFor();
  const at = await top();
  await tab.reads(500);
  assert.equal(await top(), at);
  await latest.click();
  await latest.waitFor({ state: "detached" });
  await tab.reads(700);
  await tab.page.waitForFunction(() => {
    const log = document.querySelector("[role=log]");
    return log.scrollHeight - log.clientHeight - log.scrollTop < 2;
  });
  await tab.stop.click();
  await tab.readsToTheEnd();
  assert(await isAtEnd());
}

/** A button below an answer stays under the pointer while the answer grows, so that a press does not miss it. */
export async function points_below_a_growing_answer({ person }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=4000] [delay=10] first");
  await tab.reads(300);
  await tab.field.fill("second");
  await tab.field.press("Control+Enter");
  const message = tab.page.getByRole("article", { name: "Waiting message" });
  // Its line changes, and moves the button, when the server has it.
  await message.getByText("Will be answered next.").waitFor();
  const button = tab.button("Take back", message);
  // The driver's own way to a button that moves would scroll the list, and the list would then stay where its reader is.
  const { x, y, width, height } = await button.boundingBox();
  await tab.page.mouse.move(x + width / 2, y + height / 2);
  // The browser tells of a change before it handles another press.
  const missed = await button.evaluate(async (button) => {
    const log = button.closest("[role=log]");
    // After a frame, the list has followed the newest line, and the button is where its reader sees it.
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    const { left, top, width, height } = button.getBoundingClientRect();
    const middle = [left + width / 2, top + height / 2];
    return new Promise((resolve) => {
      let [lines, missed, before] = [0, 0, log.scrollHeight];
      new MutationObserver((_, observer) => {
        if (log.scrollHeight === before) return;
        before = log.scrollHeight;
        if (document.elementFromPoint(...middle) !== button) missed += 1;
        if ((lines += 1) < 20) return;
        observer.disconnect();
        resolve(missed);
      }).observe(log, { childList: true, characterData: true, subtree: true });
    });
  });
  assert.equal(missed, 0);
  await button.click();
  await button.waitFor({ state: "detached" });
  await tab.page.waitForFunction(() => document.querySelector("#compose")?.value === "second");
  await tab.stop.click();
  await tab.readsToTheEnd();
}

/** Tool calls and thoughts: a line each, and what is behind it. */
export async function looks_into_a_tool_call({ person }) {
  const tab = await (await person()).open();
  await tab.say('[think] [call=scripted__echo {"text": "a stone\'s throw"}] [tokens=5] hello');
  await tab.readsToTheEnd();
  const activity = tab.answer.getByRole("button", { name: /^Thought( for \d+ s)? · Called echo/ });
  assert.equal(await activity.getAttribute("aria-expanded"), "false");
  await activity.click();
  await tab.answer.getByRole("listitem").first().waitFor();
  const line = tab.answer.getByRole("button", { name: /^echo scripted/ });
  assert.equal(await line.getAttribute("aria-expanded"), "false");
  await line.click();
  await tab.page.getByRole("group", { name: "Input" }).getByText(/a stone's throw/).waitFor();
  await tab.page.getByRole("group", { name: "Result" }).getByText(/a stone's throw/).waitFor();
  await line.click();
  await tab.page.getByRole("group", { name: "Input" }).waitFor({ state: "detached" });
  await activity.click();
  await line.waitFor({ state: "detached" });
  await tab.page.reload();
  await activity.waitFor();
}

async function isInView(locator) {
  const [box, size] = [await locator.boundingBox(), locator.page().viewportSize()];
  return box !== null && box.y < size.height && box.y + box.height > 0;
}

async function inView(locator) {
  const element = await locator.elementHandle();
  await locator.page().waitForFunction((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top < innerHeight && bottom > 0;
  }, element);
}

/** Each message tells when it was said: how long ago, and the moment itself for the pointer and for ears. */
export async function tells_the_time({ person }) {
  const tab = await (await person({ withClock: true })).open();
  await tab.say("[tokens=1500] [delay=50] hello");
  await tab.reads(20);
  const times = tab.log.getByRole("time");
  const told = (message) => message.locator("time [aria-hidden]");
  for (const message of [tab.questions, tab.answer]) {
    await told(message).getByText("now", { exact: true }).waitFor();
    assert(await told(message).isVisible());
    assert.equal(await told(message).evaluate((element) => getComputedStyle(element.closest(".actions")).opacity), "1");
  }
  const full = await times.first().getAttribute("title");
  assert.match(full, /\d{4}.*\d\d:\d\d:\d\d/);
  await times.first().getByText(full).waitFor();
  await tab.stop.click();
  await tab.readsToTheEnd();
  await tab.page.clock.fastForward(5 * 60_000);
  await told(tab.answer).getByText("5 min ago").waitFor();
  // It stands at the edge of its message, whatever buttons are beside it.
  const left = (element) => element.evaluate((element) => Math.round(element.getBoundingClientRect().left + parseFloat(getComputedStyle(element).paddingLeft)));
  assert.equal(await left(told(tab.answer)), await left(tab.answer.getByRole("paragraph").first()));
}

/** An answer that the model cut off says so, and its reader can ask for the rest. */
export async function asks_for_the_rest({ person }) {
  const tab = await (await person()).open();
  const cut = tab.text("The model reached its limit of length and cut this answer off.");
  await tab.say("[tokens=20] [finish=length] hello");
  await cut.waitFor();
  await tab.readsToTheEnd();
  await tab.page.reload();
  await cut.waitFor();
  await tab.button("Continue").click();
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  assert.equal(await tab.button("Continue").count(), 0);
}

/** Beside an answer that a limit of the server has cut, the reader can repeat the question, or ask for the rest. */
export async function goes_on_after_a_limit({ person }) {
  const tab = await (await person()).open();
  const cut = tab.text("The answer took longer or became longer than allowed.", tab.log);
  await tab.say("[tokens=400] [delay=20] hello");
  await cut.waitFor();
  await tab.page.reload();
  await cut.waitFor();
  await tab.button("Try again").waitFor();
  await tab.button("Continue").click();
  await tab.questions.filter({ hasText: "Continue where your answer was cut off." }).waitFor();
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  assert.equal(await tab.button("Continue").count(), 0);
  await tab.text("This answer broke off.", tab.answers.first()).waitFor();
  return { conversation: await tab.conversation() };
}

const topOf = (tab) => tab.log.evaluate((log) => log.scrollTop);

/** Only a message of this tab leads its reader to the end: neither a message that joins the answer does, nor one of another tab. */
export async function stays_where_the_reader_is({ person }) {
  const me = await person();
  const tab = await me.open();
  await tab.say("[tokens=700] [delay=1] first");
  await tab.reads(700);
  await tab.readsToTheEnd();
  const up = async () => {
    await tab.log.hover();
    await tab.page.mouse.wheel(0, -1200);
    await tab.button("Jump to latest").waitFor();
    return topOf(tab);
  };
  const other = await me.open(`/c/${await tab.conversation()}`);
  await other.readsToTheEnd();
  const before = await up();
  await other.say("[tokens=50] of the other tab");
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  assert.equal(await topOf(tab), before);

  await tab.say('[call=scripted__echo {"text": "ready", "delay_ms": 4000}] [tokens=50] third');
  await tab.page.getByRole("button", { name: /^Calling echo/ }).waitFor();
  await up();
  await tab.field.fill("fourth");
  await tab.field.press("Enter");
  const waiting = tab.page.getByRole("article", { name: "Waiting message" });
  await tab.button("Take back", waiting).waitFor();
  await inView(waiting);
  const at = await up();
  await waiting.waitFor({ state: "detached" });
  await tab.text("fourth", tab.questions).waitFor();
  await tab.readsToTheEnd();
  assert.equal(await topOf(tab), at);
}

/** A selection in the growing text survives the next words, and the text stays in its place while the reader selects. */
export async function selects_while_it_streams({ person }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=3000] [delay=10] hello");
  await tab.reads(600);
  const selected = () => tab.page.evaluate(() => getSelection().toString());
  const { x } = await tab.answer.getByRole("paragraph").last().boundingBox();
  const { y, height } = await tab.log.boundingBox();
  const { mouse } = tab.page;
  await mouse.move(x + 5, y + height / 2);
  await mouse.down();
  const at = await topOf(tab);
  await mouse.move(x + 90, y + height / 2, { steps: 5 });
  await tab.reads(700);
  assert.equal(await topOf(tab), at);
  await mouse.move(x + 120, y + height / 2, { steps: 5 });
  await mouse.up();
  const text = await selected();
  assert.match(text, /\S/);
  await tab.reads(900);
  assert.deepEqual([await selected(), await topOf(tab)], [text, at]);
  await tab.button("Jump to latest").waitFor();
  await tab.page.keyboard.press("Escape");
  await tab.readsToTheEnd();
  assert.equal(await selected(), text);
}

/** An answer to a question that does not reach the server says so in the page's words, and can be given again. */
export async function answers_without_a_connection({ person }) {
  for (const [locale, said, approve] of [["en-GB", "That did not work: The server cannot be reached.", "Approve"], ["zh-CN", "操作没有成功：无法连接服务器。", "批准"]]) {
    const me = await person({ locale });
    const tab = await me.open();
    await tab.page.locator("#compose").fill("[approval=send the report] [tokens=5]");
    await tab.page.keyboard.press("Enter");
    const button = tab.page.getByRole("button", { name: approve, exact: true });
    await button.waitFor();
    await me.context.setOffline(true);
    await button.click();
    await tab.text(said).waitFor();
    await me.context.setOffline(false);
    await button.click();
    await button.waitFor({ state: "detached" });
  }
}

/** The text of an edit is kept as that of a new message is: while another chat is read, over a reload, and until it is sent. */
export async function keeps_an_edit({ person }) {
  const me = await person();
  let tab = await me.open();
  await tab.say("[tokens=5] other");
  await tab.readsToTheEnd();
  await tab.button("New chat", tab.list).click();
  await tab.say("[tokens=5] first");
  await tab.readsToTheEnd();
  const id = await tab.conversation();
  const REWRITTEN = "[tokens=6] carefully rewritten";
  const field = () => tab.questions.getByRole("textbox", { name: "Edit your message" });
  const goOn = async () => {
    await tab.button("Continue the edit that you have not sent").click();
    assert.equal(await field().inputValue(), REWRITTEN);
  };
  await tab.act("Edit", tab.questions);
  await field().fill(REWRITTEN);
  await tab.list.getByRole("link", { name: "[tokens=5] other" }).click();
  await tab.text("[tokens=5] other", tab.questions).waitFor();
  await tab.list.getByRole("link", { name: "[tokens=5] first" }).click();
  await tab.text("[tokens=5] first", tab.questions).waitFor();
  await goOn();
  await tab.page.reload();
  await goOn();
  // Without a network the edit stays a draft; the reader closes the page meanwhile.
  await me.context.setOffline(true);
  await tab.button("Send", tab.questions).click();
  await tab.text(REWRITTEN, tab.questions).waitFor();
  await tab.page.close();
  await me.context.setOffline(false);
  tab = await me.open(`/c/${id}`);
  await goOn();
  await tab.button("Send", tab.questions).click();
  await tab.questions.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await tab.readsToTheEnd();
  // The server has it, so the earlier version has no edit that waits.
  await tab.button("Previous version", tab.questions).click();
  await tab.text("[tokens=5] first", tab.questions).waitFor();
  assert.equal(await tab.button("Continue the edit that you have not sent").count(), 0);
  await tab.act("Edit", tab.questions);
  await field().fill(REWRITTEN);
  await tab.button("Cancel", tab.questions).click();
  assert.equal(await tab.button("Continue the edit that you have not sent").count(), 0);
}
