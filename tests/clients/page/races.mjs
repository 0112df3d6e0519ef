// A person changes what the page is just reading: the server's answer is older than the change, and arrives after it.
import assert from "node:assert/strict";

import { ask } from "./asking.mjs";

const isGet = (request) => request.method() === "GET";

/**
 * Lets the page read, and `act` change something. The read begins before the page sends the change or, where `isSent`,
 * between its sending and its confirmation. The read's answer reaches the page after the confirmation.
 */
async function changesDuringRead(tab, { read, change, isSent = false }, act) {
  const { page } = tab;
  const isChanged = page.waitForResponse((response) => !isGet(response.request()) && change.test(response.url()));
  // A scenario that fails earlier has its own reason.
  isChanged.catch(() => {});
  let readIsOver;
  const isRead = new Promise((resolve) => (readIsOver = resolve));
  const readAgain = () => page.evaluate(() => dispatchEvent(new Event("online")));
  await page.route(read, async (route) => {
    if (!isGet(route.request())) return route.fallback();
    const early = await route.fetch();
    readIsOver();
    await isChanged;
    await route.fulfill({ response: early });
  });
  await page.route(change, async (route) => {
    if (isGet(route.request())) return route.fallback();
    if (isSent) await readAgain();
    await isRead;
    await route.continue();
  });
  if (!isSent) {
    await readAgain();
    await isRead;
  }
  await act();
  await isChanged;
  await page.unrouteAll({ behavior: "wait" });
}

const entry = (tab, name) => tab.list.getByRole("link", { name, exact: true });

async function beginToRename(tab, before, after) {
  await tab.list.getByRole("button", { name: `More for “\u2068${before}\u2069”` }).click();
  await tab.page.getByRole("menuitem", { name: "Rename" }).click();
  const title = tab.page.getByRole("textbox", { name: "Title" });
  await title.fill(after);
  return title;
}

async function rename(tab, before, after) {
  const title = await beginToRename(tab, before, after);
  await title.press("Enter");
  await entry(tab, after).waitFor();
}

/** The older list brings another conversation, and leaves the new title. */
export async function renames_while_the_list_is_read({ person, base }) {
  const conversation = await ask(base, "POST", "/v1/conversations", { title: "Harbour" });
  const tab = await (await person()).open(`/c/${conversation.id}`);
  for (const { before, after, isSent } of [
    { before: "Harbour", after: "Ships at sea" },
    { before: "Ships at sea", after: "Ships in port", isSent: true },
  ]) {
    await entry(tab, before).waitFor();
    const other = `Seen with ${after}`;
    await ask(base, "POST", "/v1/conversations", { title: other });
    await changesDuringRead(tab, { read: /\/v1\/conversations(\?|$)/, change: /\/v1\/conversations\/[0-9a-f-]+$/, isSent }, async () => {
      await rename(tab, before, after);
    });
    await entry(tab, other).waitFor();
    assert.equal(await entry(tab, before).count(), 0);
    assert.equal(await entry(tab, after).count(), 1);
    await tab.page.getByRole("heading", { level: 1, name: after }).waitFor();
  }
}

/** The older lists and the older task bring another task, and leave the new state and the new priority. */
export async function changes_a_task_while_it_is_read({ person, base }) {
  const project = await ask(base, "POST", "/v1/workspace/projects", { name: "Harbour" });
  const task = await ask(base, "POST", "/v1/workspace/tasks", { project_id: project.id, title: "Measure the tide" });
  const tab = await (await person()).open(`/w/${project.id}/tasks/${task.id}`);
  const row = tab.page.locator(`[data-id="${task.id}"]`);
  const [read, change] = [/\/workspace\/tasks[?/]/, /\/workspace\/tasks\/[0-9a-f-]+$/];
  await row.waitFor();
  await ask(base, "POST", "/v1/workspace/tasks", { project_id: project.id, title: "Ring the bell" });
  await changesDuringRead(tab, { read, change }, async () => {
    await row.getByRole("combobox", { name: /^State/ }).focus();
    await row.getByRole("combobox", { name: /^State/ }).selectOption("blocked");
  });
  await tab.page.getByRole("link", { name: "Ring the bell" }).waitFor();
  const state = (within) => within.getByRole("combobox", { name: /^State.*Measure the tide/ });
  const panel = tab.page.getByRole("region", { name: "Measure the tide", exact: true });
  assert.deepEqual([await state(row).inputValue(), await state(panel).inputValue()], ["blocked", "blocked"]);
  assert.equal(await row.count(), 1);

  await ask(base, "POST", "/v1/workspace/tasks", { project_id: project.id, title: "Paint the pier" });
  await changesDuringRead(tab, { read, change, isSent: true }, async () => {
    await row.getByRole("combobox", { name: /^Priority/ }).focus();
    await row.getByRole("combobox", { name: /^Priority/ }).selectOption("5");
  });
  await tab.page.getByRole("link", { name: "Paint the pier" }).waitFor();
  const priority = (within) => within.getByRole("combobox", { name: /^Priority/ });
  assert.deepEqual([await priority(row).inputValue(), await priority(panel).inputValue()], ["5", "5"]);
}

/** The older memories bring another one, and leave the new text. */
export async function changes_a_memory_while_they_are_read({ person, base }) {
  const agent = await ask(base, "POST", "/v1/agents", { name: "alma", memory: true });
  const remember = async (text) => {
    const { run } = await ask(base, "POST", "/v1/runs", { agent_id: agent.id, input: `[call=remember ${JSON.stringify({ text })}] [tokens=5]` });
    assert.equal((await (await fetch(`${base}/v1/runs/${run.id}/wait?timeout_ms=60000`)).json()).status, "completed");
  };
  await remember("Likes plum cake");
  const tab = await (await person()).open("/memories");
  const item = (text) => tab.page.getByRole("main").getByRole("listitem").filter({ hasText: text });
  await tab.button("Edit", item("Likes plum cake")).click();
  await tab.page.getByRole("textbox", { name: "Text", exact: true }).fill("Likes pear cake");
  await remember("Lives in Bonn");
  await changesDuringRead(tab, { read: /\/me\/memories(\?|$)/, change: /\/me\/memories\/[0-9a-f-]+$/ }, () => tab.button("Save").click());
  await item("Lives in Bonn").waitFor();
  await item("Likes pear cake").waitFor();
  assert.equal(await item("Likes plum cake").count(), 0);
}

/** Two titles follow each other faster than the server answers; the first one gets lost, and the second one stays. */
export async function renames_twice_before_an_answer({ person, base }) {
  const conversation = await ask(base, "POST", "/v1/conversations", { title: "Harbour" });
  const tab = await (await person()).open(`/c/${conversation.id}`);
  const sent = [];
  let goOn;
  const isSecondTyped = new Promise((resolve) => (goOn = resolve));
  await tab.page.route(/\/v1\/conversations\/[0-9a-f-]+$/, async (route) => {
    if (isGet(route.request())) return route.fallback();
    sent.push(route.request().postDataJSON().title);
    if (sent.length > 1) return route.continue();
    await isSecondTyped;
    await route.abort();
  });
  await rename(tab, "Harbour", "First");
  await rename(tab, "First", "Second");
  assert.deepEqual(sent, ["First"]);
  const isSaved = tab.page.waitForResponse((response) => !isGet(response.request()) && response.ok());
  goOn();
  await isSaved;
  assert.deepEqual(sent, ["First", "Second"]);
  await entry(tab, "Second").waitFor();
  assert.equal(await tab.text("The title could not be changed.").count(), 0);
  assert.equal((await ask(base, "GET", `/v1/conversations/${conversation.id}`)).title, "Second");
}

/** The page goes as soon as the reader leaves the field. */
export async function renames_and_leaves({ person, base }) {
  const conversation = await ask(base, "POST", "/v1/conversations", { title: "Harbour" });
  const tab = await (await person()).open(`/c/${conversation.id}`);
  const title = await beginToRename(tab, "Harbour", "Ships at sea");
  await title.evaluate((field) => {
    field.blur();
    location.assign("about:blank");
  });
  await tab.page.waitForURL("about:blank");
  const read = async () => (await ask(base, "GET", `/v1/conversations/${conversation.id}`)).title;
  while ((await read()) !== "Ships at sea") continue;
}

/** A writer types on while the page saves the text: the new words are still there, and are saved on top of it. */
export async function types_on_while_a_text_is_saved({ person, base }) {
  const project = await ask(base, "POST", "/v1/workspace/projects", { name: "Harbour" });
  const text = await ask(base, "POST", "/v1/workspace/documents", { project_id: project.id, title: "Survey", body: "one" });
  const tab = await (await person()).open(`/w/${project.id}/documents/${text.id}`);
  const survey = tab.page.getByRole("region", { name: "Survey", exact: true });
  const field = survey.getByRole("textbox", { name: "Text, in Markdown" });
  let goOn;
  const isTyped = new Promise((resolve) => (goOn = resolve));
  await tab.page.route(/\/workspace\/documents\/[0-9a-f-]+$/, async (route) => {
    if (!isGet(route.request())) await isTyped;
    await route.continue();
  });
  const saved = () => tab.page.waitForResponse((response) => !isGet(response.request()));
  await tab.button("Edit", survey).click();
  await field.fill("one\ntwo");
  const isSaved = saved();
  await tab.button("Save", survey).click();
  await field.fill("one\ntwo\nthree");
  goOn();
  await isSaved;
  assert.equal((await ask(base, "GET", `/v1/workspace/documents/${text.id}`)).body, "one\ntwo");
  await survey.locator('button[type="submit"]:not([aria-disabled="true"])').waitFor();
  assert.equal(await field.inputValue(), "one\ntwo\nthree");
  await tab.button("Save", survey).click();
  await field.waitFor({ state: "detached" });
  assert.equal((await ask(base, "GET", `/v1/workspace/documents/${text.id}`)).body, "one\ntwo\nthree");
}
