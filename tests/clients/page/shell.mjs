// The list of conversations, the page's addresses, and who one is.
import assert from "node:assert/strict";

import { ask, hasFocus } from "./asking.mjs";
import { isAccessible } from "./looks.mjs";

async function converse(tab, name) {
  await tab.button("New chat", tab.list).click();
  await tab.say(`[tokens=5] ${name}`);
  await tab.readsToTheEnd();
  return tab.conversation();
}

const entry = (tab, name) => tab.list.getByRole("link", { name });

async function choose(tab, name, action) {
  // The title stands apart from what is around it, whichever way it is read.
  await tab.list.getByRole("button", { name: `More for “\u2068${name}\u2069”` }).click();
  await tab.page.getByRole("menuitem", { name: action }).click();
}

/** Renames, searches, deletes with a way back and without. */
export async function keeps_the_list({ person, reach, told }) {
  const tab = await (await person({ withClock: true })).open();
  const ids = [];
  for (const name of ["harbour", "lighthouse", "pier"]) ids.push(await converse(tab, name));
  const [harbour, lighthouse, pier] = ["harbour", "lighthouse", "pier"].map((name) => `[tokens=5] ${name}`);
  await entry(tab, harbour).waitFor();

  await choose(tab, harbour, "Rename");
  const title = tab.page.getByRole("textbox", { name: "Title" });
  assert.equal(await title.inputValue(), harbour);
  await title.fill("Ships <b>at</b> sea");
  await title.press("Enter");
  await entry(tab, "Ships <b>at</b> sea").waitFor();
  // The reader can leave an unfinished rename.
  await choose(tab, lighthouse, "Rename");
  await title.fill("Nothing");
  await title.press("Escape");
  await entry(tab, lighthouse).waitFor();

  const search = tab.page.getByRole("searchbox", { name: "Search conversations" });
  await search.fill("lighthouse");
  await entry(tab, pier).waitFor({ state: "detached" });
  await entry(tab, lighthouse).waitFor();
  await search.fill("nowhere at all");
  await tab.text(/^No conversation contains .*nowhere at all/).waitFor();
  await search.press("Escape");
  assert.equal(await search.inputValue(), "");
  await entry(tab, pier).waitFor();

  await choose(tab, pier, "Delete");
  await entry(tab, pier).waitFor({ state: "detached" });
  await tab.page.waitForURL("/");
  await tab.button("Undo").click();
  await entry(tab, pier).waitFor();
  await tab.page.waitForURL(`/c/${ids[2]}`);
  await choose(tab, lighthouse, "Delete");
  await entry(tab, lighthouse).waitFor({ state: "detached" });
  // For as long as there is a way back, the server was not asked.
  reach("deleted", { id: ids[1] });
  await told();
  const gone = tab.page.waitForResponse((response) => response.request().method() === "DELETE");
  await tab.page.clock.fastForward(8_100);
  assert((await gone).ok());
  // A reader who leaves the page at once has deleted the conversation, too.
  await choose(tab, "Ships <b>at</b> sea", "Delete");
  await entry(tab, "Ships <b>at</b> sea").waitFor({ state: "detached" });
  await tab.page.reload();
  await entry(tab, pier).waitFor();
  return { kept: ids[2], deleted: [ids[0], ids[1]] };
}

/** A conversation whose deletion waits says so, and takes no message; its reader has it back, or not. */
export async function goes_back_after_a_deletion({ person }) {
  const tab = await (await person({ withClock: true })).open();
  const id = await converse(tab, "harbour");
  const title = "[tokens=5] harbour";
  const goBack = async () => {
    await entry(tab, title).waitFor();
    await choose(tab, title, "Delete");
    await tab.page.waitForURL("/");
    await tab.page.goBack();
    await tab.page.waitForURL(`/c/${id}`);
    await tab.page.getByRole("heading", { name: "Conversation deleted" }).waitFor();
    assert.equal(await tab.field.count(), 0);
  };
  await goBack();
  await tab.button("Undo", tab.page.getByRole("main")).click();
  await tab.text(title, tab.questions).waitFor();
  await tab.field.fill("what comes next");
  await goBack();
  const gone = tab.page.waitForResponse((response) => response.request().method() === "DELETE");
  await tab.page.clock.fastForward(8_100);
  assert((await gone).ok());
  await tab.page.getByRole("heading", { name: "Conversation not found" }).waitFor();
  await tab.text("what comes next", tab.page.getByRole("blockquote")).waitFor();
  await isAccessible(tab, "the draft of a deleted conversation");
}

/**
 * A tab with the conversation hears of its deletion in another tab, or in another browser when it writes. The
 * reader takes the written text along to a new chat.
 */
export async function deletes_in_another_tab({ person, base }) {
  const me = await person();
  const tab = await me.open();
  const id = await converse(tab, "harbour");
  await entry(tab, "[tokens=5] harbour").waitFor();
  const other = await me.open(`/c/${id}`);
  await other.field.fill("[tokens=5] my long message");
  await choose(tab, "[tokens=5] harbour", "Delete");
  // The reader leaves before the time to undo is over.
  await tab.page.close();
  const isGone = async (text) => {
    await other.page.getByRole("heading", { name: "Conversation not found" }).waitFor();
    await other.text(text, other.page.getByRole("blockquote")).waitFor();
    await other.button("Continue in a new chat").click();
    await other.page.waitForURL("/");
    assert.equal(await other.field.inputValue(), text);
  };
  await isGone("[tokens=5] my long message");
  await entry(other, "[tokens=5] harbour").waitFor({ state: "detached" });
  await other.send.click();
  await other.readsToTheEnd();
  assert((await fetch(`${base}/v1/conversations/${await other.conversation()}`, { method: "DELETE" })).ok);
  await other.say("[tokens=5] one more");
  await isGone("[tokens=5] one more");
  await other.page.reload();
  assert.equal(await other.field.inputValue(), "[tokens=5] one more");
  assert.deepEqual((await ask(base, "GET", "/v1/conversations")).items, []);
}

/** A search finds words in any order, shows the place, and leads to it; offline it says why it cannot. */
export async function finds_the_place({ person }) {
  const me = await person();
  const tab = await me.open();
  await tab.say("[tokens=600] [delay=1] the lighthouse at the harbour");
  await tab.reads(600);
  await tab.readsToTheEnd();
  await tab.say("[tokens=600] [delay=1] something else");
  await tab.answers.nth(1).waitFor();
  await tab.reads(600);
  await tab.readsToTheEnd();
  const asked = tab.questions.first();
  const isInView = () => asked.evaluate((element) => element.getBoundingClientRect().bottom > 0);
  assert(!(await isInView()));
  const search = tab.page.getByRole("searchbox", { name: "Search conversations" });
  await search.fill("harbour lighthouse");
  const found = tab.list.getByRole("link").filter({ has: tab.page.locator(".item-found") });
  await found.getByText("the lighthouse at the harbour").last().waitFor();
  await found.click();
  await tab.page.locator("article[data-found]").getByText("the lighthouse at the harbour").waitFor();
  assert(await isInView());
  // The link is an address, too.
  const other = await me.open(new URL(tab.page.url()).pathname + new URL(tab.page.url()).hash);
  await other.page.locator("article[data-found]").getByText("the lighthouse at the harbour").waitFor();

  // After a reload, a reader who has written more is at the end.
  await tab.say("[tokens=600] [delay=1] and now?");
  await tab.answers.nth(2).waitFor();
  await tab.readsToTheEnd();
  assert.equal(new URL(tab.page.url()).hash, "");
  await tab.page.reload();
  await tab.answers.nth(2).waitFor();
  await tab.page.waitForFunction(() => [...document.querySelectorAll("article")].at(-1).getBoundingClientRect().bottom <= innerHeight);

  await me.context.setOffline(true);
  await search.fill("windmill");
  await tab.text("Searching needs the server, which cannot be reached now.").waitFor();
  await me.context.setOffline(false);
  await tab.text(/^No conversation contains .*windmill/).waitFor();
}

/** In a long message, a search leads to the word itself and marks it, also where the page had shown the beginning only. */
export async function finds_the_word({ person }) {
  const tab = await (await person()).open();
  const lines = Array.from({ length: 60 }, (_, n) => `entry ${n + 1} of the harbour`).join("\n");
  await tab.say(`[tokens=900] [delay=1] ${lines}\nthe word is zanzibar\n${lines}`);
  await tab.reads(900);
  await tab.readsToTheEnd();
  await tab.button("Show all", tab.questions).waitFor();
  await tab.button("New chat", tab.list).click();
  const search = tab.page.getByRole("searchbox", { name: "Search conversations" });
  const words = "harbour zanzibar";
  await search.fill(words);
  await tab.list.locator(".item-found mark").first().waitFor();
  await search.press("Enter");
  const isMarkedInSight = () => [...(CSS.highlights.get("found") ?? [])].some((range) => {
    const { top, bottom } = range.getBoundingClientRect();
    return range.toString() === "zanzibar" && top > 0 && bottom < innerHeight;
  });
  await tab.page.waitForFunction(isMarkedInSight);
  await tab.page.reload();
  await tab.page.waitForFunction(isMarkedInSight);
}

/** The list of a new search begins at its top, and the arrows go through it from the field and back. */
export async function goes_through_the_list({ person, base }) {
  for (let n = 1; n <= 40; n += 1) await ask(base, "POST", "/v1/conversations", { title: `harbour ${n}` });
  const tab = await (await person()).open();
  const search = tab.page.getByRole("searchbox", { name: "Search conversations" });
  const entry = (name) => tab.list.getByRole("link", { name, exact: true });
  await entry("harbour 1").scrollIntoViewIfNeeded();
  await search.fill("harbour");
  await entry("harbour 40").locator("mark").waitFor();
  const box = await entry("harbour 40").boundingBox();
  const field = await search.boundingBox();
  assert(box.y >= field.y + field.height, "the first one is below the field, not behind it");
  await search.press("ArrowDown");
  await hasFocus(entry("harbour 40"));
  await tab.page.keyboard.press("ArrowDown");
  await hasFocus(entry("harbour 39"));
  await tab.page.keyboard.press("ArrowUp");
  await tab.page.keyboard.press("ArrowUp");
  await hasFocus(search);
  assert.equal(await search.inputValue(), "harbour");
  await search.press("Enter");
  await tab.page.getByRole("heading", { level: 1, name: "harbour 40" }).waitFor();
}

/** A double click on a conversation opens it as a click does, and one on its title above the chat renames it. */
export async function opens_by_a_double_click({ person, base }) {
  for (const title of ["harbour", "pier"]) await ask(base, "POST", "/v1/conversations", { title });
  const tab = await (await person()).open();
  await entry(tab, "harbour").waitFor();
  await tab.page.evaluate(() => {
    globalThis.fieldsInList = 0;
    new MutationObserver(() => (fieldsInList += document.querySelectorAll(".item .title-field").length)).observe(document.body, { childList: true, subtree: true });
  });
  const steps = () => tab.page.evaluate(() => history.length);
  const heading = tab.page.getByRole("heading", { level: 1, name: "harbour" });
  const before = await steps();
  await entry(tab, "harbour").dblclick();
  await heading.waitFor();
  await hasFocus(tab.field);
  assert.equal(await steps(), before + 1);

  await tab.say("[tokens=5] a windmill");
  await tab.readsToTheEnd();
  await entry(tab, "pier").click();
  await tab.page.getByRole("heading", { level: 1, name: "pier" }).waitFor();
  await tab.page.getByRole("searchbox", { name: "Search conversations" }).fill("windmill");
  await tab.list.locator(".item-found mark").first().waitFor();
  const beforeSearch = await steps();
  await entry(tab, "harbour").dblclick();
  await heading.waitFor();
  await hasFocus(tab.field);
  assert.equal(await steps(), beforeSearch + 1);
  assert.equal(await tab.page.evaluate(() => fieldsInList), 0);

  await heading.dblclick();
  const title = tab.page.getByRole("textbox", { name: "Title" });
  await hasFocus(title);
  assert.equal(await title.evaluate(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd)), "harbour");
}

/** On paper there is the whole conversation, and nothing that is pressed. */
export async function prints({ person }) {
  const tab = await (await person()).open();
  const letter = Array.from({ length: 60 }, (_, n) => `line ${n + 1}`).join("\n");
  await tab.say(`[tokens=700] [delay=1] ${letter}\nYours, Ann`);
  await tab.reads(700);
  await tab.readsToTheEnd();
  await tab.button("Show all", tab.questions).waitFor();
  await tab.page.evaluate(() => (document.documentElement.dataset.theme = "dark"));
  // The browser tells the page before it draws for paper.
  const tell = (what) => tab.page.evaluate((what) => void dispatchEvent(new Event(what)), what);
  await tell("beforeprint");
  await tab.page.emulateMedia({ media: "print" });
  await tab.questions.getByText("Yours, Ann").waitFor();
  assert.equal(await tab.log.evaluate((log) => getComputedStyle(log).colorScheme), "light");
  const isWhole = () => tab.log.evaluate((log) => log.scrollHeight <= log.clientHeight + 1 && document.body.scrollHeight > innerHeight);
  assert(await isWhole());
  for (const unwanted of [tab.field, tab.list, tab.button("New chat"), tab.answer.getByRole("button").first()]) assert(!(await unwanted.isVisible()));
  assert(await tab.questions.isVisible());
  await tell("afterprint");
  await tab.page.emulateMedia({ media: "screen" });
  await tab.questions.getByText("Yours, Ann").waitFor({ state: "detached" });
}

/** Briefings are listed; one is deleted, and another one leads to the conversation about it. */
export async function talks_about_a_briefing({ person }) {
  const tab = await (await person()).open();
  await tab.button("Briefings", tab.list).click();
  const dialog = tab.page.getByRole("dialog", { name: "Briefings" });
  const briefing = dialog.getByRole("article", { name: "High water" });
  await briefing.getByText("At six the quay will be flooded.").waitFor();
  await briefing.locator("strong").getByText("quay").waitFor();
  const other = dialog.getByRole("article", { name: "Low water" });
  await tab.button("Delete", other).click();
  await other.waitFor({ state: "detached" });
  await tab.button("Go on talking about it", briefing).click();
  await dialog.waitFor({ state: "detached" });
  await tab.conversation();
  await tab.log.getByText("At six the quay will be flooded.").waitFor();
  await tab.say("[tokens=5] what now?");
  await tab.readsToTheEnd();
}

/** Links, unknown ones, back and forward. */
export async function goes_by_addresses({ person }) {
  const me = await person();
  const tab = await me.open();
  await tab.say("[tokens=5] harbour");
  await tab.readsToTheEnd();
  const first = await tab.conversation();
  const second = await converse(tab, "lighthouse");
  // The empty chat in which it was begun is nothing to go back to.
  await tab.page.goBack();
  await tab.text("[tokens=5] harbour", tab.questions).waitFor();
  assert.equal(await tab.conversation(), first);
  await tab.page.goForward();
  await tab.text("[tokens=5] lighthouse", tab.questions).waitFor();
  assert.equal(await tab.conversation(), second);
  assert.equal(await tab.page.title(), "[tokens=5] lighthouse · Holdfast");
  await entry(tab, "[tokens=5] harbour").click();
  await tab.text("[tokens=5] harbour", tab.questions).waitFor();

  const link = await me.open(`/c/${second}`);
  await link.text("[tokens=5] lighthouse", link.questions).waitFor();
  const nowhere = await me.open("/nowhere");
  await nowhere.text("There is nothing at this address").waitFor();
  const unknown = await me.open("/c/01890000-0000-7000-8000-000000000000");
  await unknown.text("Conversation not found").waitFor();
  await unknown.button("New chat", unknown.page.getByRole("main")).click();
  await unknown.page.waitForURL("/");
  await unknown.say("[tokens=5] from nowhere");
  await unknown.readsToTheEnd();
}

/** Where only tokens count, the page asks for one. */
export async function signs_in({ person, given }) {
  const me = await person();
  const tab = await me.open();
  const dialog = tab.page.getByRole("dialog", { name: "Sign in" });
  const token = dialog.getByLabel("Token");
  await token.fill("nonsense");
  await tab.button("Sign in", dialog).click();
  await tab.text(/^The server does not accept this token\./).waitFor();
  await token.fill(`Bearer ${given.token}`);
  await tab.button("Sign in", dialog).click();
  await dialog.waitFor({ state: "detached" });
  await tab.text("ann", tab.list).waitFor();
  await tab.say("[tokens=5] hello");
  await tab.readsToTheEnd();
  await tab.page.reload();
  await tab.text("[tokens=5] hello", tab.questions).waitFor();
  await tab.button("Sign out").click();
  await dialog.waitFor();
  assert.equal(await tab.questions.count(), 0);
  assert.equal(await tab.list.locator(".item").count(), 0);
}

async function signsIn(tab, token) {
  await tab.button("Sign in", tab.list).click();
  const dialog = tab.page.getByRole("dialog", { name: "Sign in" });
  await dialog.getByLabel("Token").fill(token);
  await tab.button("Sign in", dialog).click();
  await tab.text("This browser has 1 conversation from before. Shall it become yours?", dialog).waitFor();
  return dialog;
}

/** A reader signs in and takes the earlier conversation along; the open chat stays open. */
export async function takes_conversations_along({ person, given }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=5] before");
  await tab.readsToTheEnd();
  const id = await tab.conversation();
  const dialog = await signsIn(tab, given.token);
  await tab.button("Take along", dialog).click();
  await dialog.waitFor({ state: "detached" });
  await tab.text("ann", tab.list).waitFor();
  await tab.text("[tokens=5] before", tab.questions).waitFor();
  assert.equal(await tab.conversation(), id);
  await tab.say("[tokens=5] after");
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  assert.equal(await tab.button("Take along 1 earlier conversation").count(), 0);
}

/** A reader signs in, leaves the conversation behind, and takes it along later. */
export async function leaves_conversations_behind({ person, given }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=5] before");
  await tab.readsToTheEnd();
  const dialog = await signsIn(tab, given.token);
  await tab.button("Leave behind", dialog).click();
  await tab.page.waitForURL("/");
  await tab.text("ann", tab.list).waitFor();
  await tab.text("Your conversations will be kept here.", tab.list).waitFor();
  await tab.button("Take along 1 earlier conversation").click();
  await entry(tab, "[tokens=5] before").click();
  await tab.text("[tokens=5] before", tab.questions).waitFor();
}

/** A session has the name that a program has given it. */
export async function lists_a_session({ person }) {
  const tab = await (await person()).open();
  await entry(tab, /harbour-bot/).waitFor();
}

/** A title that the server did not get is in the field again for another try. */
export async function renames_without_a_connection({ person }) {
  const me = await person();
  const tab = await me.open();
  await tab.say("[tokens=5] harbour");
  await tab.readsToTheEnd();
  await entry(tab, "[tokens=5] harbour").waitFor();
  const title = tab.page.getByRole("textbox", { name: "Title" });
  await me.context.setOffline(true);
  await choose(tab, "[tokens=5] harbour", "Rename");
  await title.fill("Ships at sea");
  await title.press("Enter");
  await tab.text("The title could not be changed.").waitFor();
  await choose(tab, "[tokens=5] harbour", "Rename");
  assert.equal(await title.inputValue(), "Ships at sea");
  await me.context.setOffline(false);
  // A page that is loaded again aborts the requests that have no answer.
  const saved = tab.page.waitForResponse((response) => response.request().method() === "PATCH");
  await title.press("Enter");
  await entry(tab, "Ships at sea").waitFor();
  await saved;
  await tab.page.reload();
  await entry(tab, "Ships at sea").waitFor();
  await choose(tab, "Ships at sea", "Rename");
  assert.equal(await title.inputValue(), "Ships at sea");
}

/** In a low and wide window, the header stays in sight, and the list scrolls by itself. */
export async function fits_into_a_low_window({ person }) {
  const tab = await (await person({ width: 1000, height: 300 })).open();
  await tab.say("[tokens=30] [delay=1] harbour");
  await tab.readsToTheEnd();
  await tab.field.focus();
  const header = tab.page.getByRole("heading", { level: 1 });
  const page = () => tab.page.evaluate(() => [document.scrollingElement.scrollTop, document.scrollingElement.scrollHeight - innerHeight]);
  assert.deepEqual(await page(), [0, 0]);
  await entry(tab, /harbour/).click();
  assert.deepEqual(await page(), [0, 0]);
  assert((await header.boundingBox()).y >= 0);
}
