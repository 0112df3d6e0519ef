// The pages of the workspace: projects with what is in them, texts that two people change, and chats about a project.
import assert from "node:assert/strict";

import { isAccessible } from "./looks.mjs";

/** Writes as another program would. */
async function write(base, method, path, body) {
  const response = await fetch(`${base}/v1/workspace/${path}`, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  return response.json();
}

const row = (tab, name) => tab.page.getByRole("listitem").filter({ has: tab.page.getByRole("link", { name, exact: true }) });
const panel = (tab, name) => tab.page.getByRole("region", { name, exact: true });

/** A person creates a project and a task, changes it in the list, deletes it, and wants it back. */
export async function keeps_a_project({ person }) {
  const tab = await (await person()).open();
  await tab.list.getByRole("link", { name: "Projects", exact: true }).click();
  await tab.button("New project").last().click();
  await tab.page.getByRole("textbox", { name: "Name of the project" }).fill("Harbour");
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("heading", { name: "Harbour" }).waitFor();
  const field = tab.page.getByRole("textbox", { name: "Add a task" });
  await field.fill("Call the harbour master");
  await tab.page.keyboard.press("Enter");
  const task = row(tab, "Call the harbour master");
  const state = task.getByRole("combobox", { name: /^State/ });
  await state.focus();
  await state.selectOption("blocked");
  await tab.page.getByRole("region", { name: /^blocked/ }).getByRole("link", { name: "Call the harbour master" }).waitFor();
  await tab.page.waitForFunction(() => document.activeElement?.value === "blocked");
  await task.getByRole("combobox", { name: /^Priority/ }).focus();
  await task.getByRole("combobox", { name: /^Priority/ }).selectOption("5");
  await isAccessible(tab, "a project");
  await task.getByRole("link").click();
  await tab.button("Delete", panel(tab, "Call the harbour master")).click();
  await task.waitFor({ state: "detached" });
  await tab.button("Undo", tab.page.getByRole("status")).click();
  await panel(tab, "Call the harbour master").waitFor();
  await isAccessible(tab, "a task");
  await tab.page.goBack();
  await tab.page.reload();
  await task.getByRole("combobox", { name: /^Priority/ }).filter({ hasText: "Urgent" }).waitFor();
}

/** The list is read before the task is created, and the answer arrives after it. */
export async function keeps_a_task_that_a_slow_list_lacks({ person, base }) {
  const project = await write(base, "POST", "projects", { name: "Harbour" });
  const tab = await (await person()).open("/w");
  const isAdded = tab.page.waitForResponse((response) => response.request().method() === "POST" && response.url().endsWith("/workspace/tasks"));
  await tab.page.route(/\/workspace\/tasks\?/, async (route) => {
    const early = await route.fetch();
    await isAdded;
    await route.fulfill({ response: early });
  });
  await tab.page.getByRole("link", { name: "Harbour" }).click();
  await tab.page.getByRole("textbox", { name: "Add a task" }).fill("Call the harbour master");
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("region", { name: /^to do 1/ }).waitFor();
  await row(tab, "Call the harbour master").waitFor();
}

/** A person writes tasks faster than the server takes them, and one that the server did not get stays for another try. */
export async function adds_tasks_quickly({ person, base }) {
  const project = await write(base, "POST", "projects", { name: "Harbour" });
  const me = await person();
  const tab = await me.open(`/w/${project.id}`);
  const field = tab.page.getByRole("textbox", { name: "Add a task" });
  const posted = [];
  let isFree;
  const free = new Promise((resolve) => (isFree = resolve));
  await tab.page.route(/\/workspace\/tasks$/, async (route) => {
    if (route.request().method() === "POST") posted.push(route.request().postDataJSON().title);
    await free;
    await route.continue();
  });
  await field.focus();
  for (const name of ["one", "two", "three"]) {
    await tab.page.keyboard.type(name);
    await tab.page.keyboard.press("Enter");
    assert.equal(await field.inputValue(), "");
  }
  assert.deepEqual(posted, ["one"]);
  isFree();
  await tab.page.getByRole("region", { name: /^to do 3/ }).waitFor();
  assert.deepEqual(posted, ["one", "two", "three"]);

  await me.context.setOffline(true);
  await tab.page.keyboard.type("four");
  await tab.page.keyboard.press("Enter");
  await tab.page.keyboard.type("fi");
  await tab.text("“\u2068four\u2069” is not added yet.").waitFor();
  await tab.page.keyboard.type("ve");
  assert.equal(await field.inputValue(), "five");
  await me.context.setOffline(false);
  await tab.button("Try again").click();
  await row(tab, "four").waitFor();
  assert.equal(await tab.button("Try again").count(), 0);
  assert.equal(await field.inputValue(), "five");
}

/** Two people change one text, and the slower one loses nothing, also with a reload in between. */
export async function loses_no_text({ person, base }) {
  const project = await write(base, "POST", "projects", { name: "Harbour" });
  const text = await write(base, "POST", "documents", { project_id: project.id, title: "Survey", body: "one\ntwo\nthree" });
  const tab = await (await person()).open(`/w/${project.id}/documents/${text.id}`);
  const survey = panel(tab, "Survey");
  await tab.button("Edit", survey).click();
  const field = survey.getByRole("textbox", { name: "Text, in Markdown" });
  await field.fill("one\ntwo\nthree\nmine");
  await write(base, "PATCH", `documents/${text.id}`, { body: "theirs\none\ntwo\nthree" });
  await tab.page.reload();
  await tab.text("This is your unsaved text from before.").waitFor();
  await tab.button("Save", survey).click();
  await tab.page.getByRole("region", { name: "The newer text" }).locator("pre", { hasText: "theirs" }).waitFor();
  await tab.page.getByRole("region", { name: "Your text" }).locator("pre", { hasText: "mine" }).waitFor();
  await isAccessible(tab, "two texts");
  await tab.button("Edit both together", survey).click();
  assert.equal(await field.inputValue(), "theirs\none\ntwo\nthree\nmine");
  await tab.button("Save", survey).click();
  await field.waitFor({ state: "detached" });
  await tab.button("History", survey).click();
  await tab.button("Undo", survey).first().click();
  await tab.button("Take the undo back").waitFor();
  // The history still has the line.
  await survey.locator(".markdown", { hasText: "mine" }).waitFor({ state: "detached" });
}

/** A chat about a project: its context, what it changed as a link, and the undo of it. */
export async function talks_about_a_project({ person, base }) {
  const project = await write(base, "POST", "projects", { name: "Harbour" });
  const tab = await (await person()).open(`/w/${project.id}`);
  await tab.button("Talk about this project").click();
  await tab.page.getByRole("radio", { name: /^A project/, checked: true }).waitFor();
  await isAccessible(tab, "a new chat about a project");
  await tab.say('[call=create_onto_task {"title": "Measure the tide"}] [tokens=5]');
  await tab.readsToTheEnd();
  await tab.answer.getByRole("link", { name: "Measure the tide" }).waitFor();
  // The line of the call says what it has done, and the tool's name is one click below.
  const line = tab.answer.getByRole("button", { name: /^Created the task .*Measure the tide/ });
  await line.click();
  await tab.text("create_onto_task", tab.answer).first().waitFor();
  await isAccessible(tab, "an answer that has changed something");
  await tab.button("Undo changes", tab.answer).click();
  await tab.text("The changes are undone.", tab.answer).waitFor();
  await tab.button("Take the undo back").click();
  await tab.text("The changes are there again.").waitFor();
  await tab.button("Undo changes", tab.answer).click();
  const first = tab.answers.first();
  await tab.text("The changes are undone.", first).waitFor();
  // It stays undone after a further message, which only reads, and after a reload.
  await tab.say("[call=list_onto_tasks {}] [tokens=5]");
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  assert.equal(await tab.answer.getByRole("link").count(), 0, "what was only read has no link");
  await tab.page.reload();
  await tab.text("The changes are undone.", first).waitFor();
  assert.equal(await tab.button("Undo changes").count(), 0);
  const project_changes = (await (await fetch(`${base}/v1/workspace/changes`)).json()).items;
  const undo = project_changes.find(({ action }) => action === "remove");
  await fetch(`${base}/v1/workspace/change_sets/${undo.change_set_id}/undo`, { method: "POST" });
  await tab.page.reload();
  await tab.button("Undo changes", first).waitFor();
  await first.getByRole("link", { name: "Measure the tide" }).click();
  await panel(tab, "Measure the tide").waitFor();
  assert(new URL(tab.page.url()).pathname.startsWith(`/w/${project.id}/tasks/`));
}

/** Everything in a project fits on a phone. */
export async function reads_a_project_on_a_phone({ person, base }) {
  const project = await write(base, "POST", "projects", { name: "Harbour", description: "Renew it." });
  const task = await write(base, "POST", "tasks", { project_id: project.id, title: "Measure the tide for two weeks, and compare the result with the tables of ten years" });
  const goal = await write(base, "POST", "goals", { project_id: project.id, name: "Open the quay" });
  await write(base, "POST", "edges", { project_id: project.id, from_kind: "task", from_id: task.id, relation: "supports", to_kind: "goal", to_id: goal.id });
  const reader = await person({ width: 360, height: 700, hasTouch: true, isMobile: true, colorScheme: "dark" });
  for (const path of ["/w", `/w/${project.id}`, `/w/${project.id}/relations`, `/w/${project.id}/history`, `/w/${project.id}/tasks/${task.id}`, "/w/templates"]) {
    const tab = await reader.open(path);
    await tab.page.getByRole("heading", { level: 1 }).waitFor();
    await tab.page.getByRole("img", { name: "Reading" }).first().waitFor({ state: "detached" });
    assert(await tab.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path);
    await isAccessible(tab, path);
  }
}
