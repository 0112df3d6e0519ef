// The page of a project: its tasks in an order and in groups, its conversations, and what an agent changes while one looks.
import assert from "node:assert/strict";

import { ask } from "./asking.mjs";
import { isAccessible } from "./looks.mjs";

const create = (base, kind, fields) => ask(base, "POST", `/v1/workspace/${kind}`, fields);

const today = (days = 0) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

const names = (tab) => tab.page.locator(".row-name").allTextContents();
const headings = (tab) => tab.page.locator(".board h2").allTextContents();

/** Tasks are grouped by state, priority and due date, and sorted within a state; a change moves a task, and the choice stays. */
export async function sorts_and_groups_tasks({ person, base }) {
  const project = await create(base, "projects", { name: "Harbour" });
  const add = (title, fields) => create(base, "tasks", { project_id: project.id, title, ...fields });
  await add("Paint", { priority: 1, due_at: today(30) });
  await add("Call", { priority: 5, due_at: today(-3), state: "in_progress" });
  await add("Weld", { priority: 5, due_at: today(3) });
  await add("Rest", {});
  await add("Mow", { state: "done", priority: 4 });
  const tab = await (await person()).open(`/w/${project.id}`);
  await tab.page.getByRole("region", { name: /^to do 3/ }).waitFor();
  await tab.button("Sort and filter").click();
  await tab.page.getByRole("combobox", { name: "Sort by" }).selectOption("Priority");
  await tab.page.waitForFunction(() => [...document.querySelectorAll(".row-name")].map((name) => name.textContent).join() === "Call,Weld,Paint,Rest");
  assert.deepEqual((await headings(tab)).map((heading) => heading.trim()), ["in progress1", "to do3", "done"]);

  await tab.page.getByRole("combobox", { name: "Group by" }).selectOption("Priority");
  await tab.page.getByRole("region", { name: "Urgent 2" }).waitFor();
  await tab.page.getByRole("region", { name: "No priority 1" }).waitFor();
  assert.deepEqual(await names(tab), ["Call", "Weld", "Paint", "Rest"]);
  await isAccessible(tab, "tasks by priority");
  // A raised task moves, and keeps the focus.
  const priority = tab.page.getByRole("listitem").filter({ hasText: "Rest" }).getByRole("combobox", { name: /^Priority/ });
  await priority.focus();
  await priority.selectOption("Urgent");
  await tab.page.getByRole("region", { name: "Urgent 3" }).getByRole("link", { name: "Rest" }).waitFor();
  await tab.page.waitForFunction(() => document.activeElement?.ariaLabel?.includes("Rest"));

  await tab.page.getByRole("combobox", { name: "Group by" }).selectOption("Due date");
  await tab.page.getByRole("region", { name: "Overdue 1" }).getByRole("link", { name: "Call" }).waitFor();
  await tab.page.getByRole("region", { name: "In the next 7 days 1" }).getByRole("link", { name: "Weld" }).waitFor();
  await tab.page.getByRole("region", { name: "No date 1" }).getByRole("link", { name: "Rest" }).waitFor();
  await tab.page.reload();
  await tab.page.getByRole("region", { name: "Overdue 1" }).waitFor();
  assert.deepEqual(await names(tab), ["Call", "Weld", "Paint", "Rest"]);
  // The done ones are there, and closed.
  assert.equal(await tab.page.getByRole("button", { name: "done", exact: true }).getAttribute("aria-expanded"), "false");
  await tab.button("Sort and filter").click();
  await tab.page.getByRole("combobox", { name: "Priority", exact: true }).selectOption("Lowest");
  await tab.page.waitForFunction(() => document.querySelectorAll(".row-name").length === 1);
  assert.deepEqual(await names(tab), ["Paint"]);
  await tab.button("Sort and filter: 1 filter").waitFor();
  await tab.page.getByRole("combobox", { name: "Priority", exact: true }).selectOption("Medium");
  await tab.text("Nothing matches these filters.").waitFor();
}

/** A list of many pages stays in order where the reader scrolls. */
export async function sorts_a_long_list({ person, base }) {
  const project = await create(base, "projects", { name: "Harbour" });
  for (let number = 0; number < 120; number += 1) await create(base, "tasks", { project_id: project.id, title: `Task ${number}`, priority: (number % 5) + 1, due_at: today(number % 7) });
  const tab = await (await person()).open(`/w/${project.id}`);
  await tab.page.evaluate(() => localStorage.setItem("holdfast.tasks", "state priority"));
  await tab.page.reload();
  await tab.page.getByRole("region", { name: /^to do 1?\d\d/ }).waitFor();
  while ((await names(tab)).length < 120) {
    await tab.page.locator(".workspace-scroll").evaluate((scroller) => scroller.scrollTo(0, scroller.scrollHeight));
    await tab.page.evaluate(() => new Promise(requestAnimationFrame));
  }
  const { items } = await ask(base, "GET", `/v1/workspace/tasks?project_id=${project.id}&order=priority&limit=200`);
  assert.deepEqual(await names(tab), items.map(({ title }) => title));
}

/** A project without tasks invites to begin, on the page and in its conversations. */
export async function begins_in_an_empty_project({ person, base }) {
  const project = await create(base, "projects", { name: "Boat shed" });
  const tab = await (await person()).open(`/w/${project.id}`);
  await tab.page.getByRole("heading", { name: "No tasks yet" }).waitFor();
  assert.deepEqual(await headings(tab), ["No tasks yet"]);
  await isAccessible(tab, "an empty project");
  await tab.page.getByRole("link", { name: "Conversations", exact: true }).click();
  await tab.page.getByRole("heading", { name: "No conversations yet" }).waitFor();
  await tab.page.goBack();
  await tab.page.getByRole("textbox", { name: "Add a task" }).fill("Measure the roof");
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("region", { name: "to do 1" }).waitFor();
  await tab.page.getByRole("heading", { name: "No tasks yet" }).waitFor({ state: "detached" });
}

/** The first task stands near the top, and the field for a date has room, on a phone and on a large screen. */
export async function finds_the_first_task_at_the_top({ person, base }) {
  const project = await create(base, "projects", { name: "Garden party", description: "Invite the neighbours, and borrow tables. ".repeat(20), start_at: "2026-11-01", end_at: "2026-12-20" });
  await create(base, "tasks", { project_id: project.id, title: "Call the tent company, and ask for a floor", priority: 5, due_at: today(-3) });
  for (const options of [{ width: 390, height: 844, hasTouch: true, isMobile: true }, { width: 1000, height: 800 }, { width: 1440, height: 900 }]) {
    const tab = await (await person(options)).open(`/w/${project.id}`);
    const row = tab.page.getByRole("listitem").filter({ hasText: "Call the tent company" });
    await row.waitFor();
    const top = await row.evaluate((row) => row.getBoundingClientRect().top);
    assert(top < 300, `${options.width}: the first task stands at ${top} px`);
    await row.getByRole("button", { name: /^Due date of .*\(Overdue\)$/ }).click();
    const field = row.getByLabel(/^Due date of/).first();
    await field.waitFor();
    const isWithin = await row.evaluate((row) => {
      const outer = row.getBoundingClientRect();
      return [...row.querySelectorAll(".date-field > *")].every((element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        return left >= outer.left - 1 && right <= outer.right + 1 && top >= outer.top - 1 && bottom <= outer.bottom + 1;
      });
    });
    assert(isWithin, `${options.width}: the field for a date has room`);
    const input = await row.locator('input[type="date"]').evaluate(({ clientWidth, scrollWidth }) => [clientWidth, scrollWidth]);
    assert(input[0] >= input[1], `${options.width}: the date is not cut off`);
  }
}

/** While an agent works, its changes appear on the project's page, and the project lists the conversation. */
export async function sees_an_agent_at_work({ person, base }) {
  const project = await create(base, "projects", { name: "Harbour" });
  const task = await create(base, "tasks", { project_id: project.id, title: "Measure the tide" });
  const me = await person();
  const page = await me.open(`/w/${project.id}`);
  await page.page.getByRole("region", { name: "to do 1" }).waitFor();
  const reads = [];
  page.page.on("request", (request) => reads.push(new URL(request.url()).pathname));
  const chat = await me.open(`/w/${project.id}`);
  await chat.button("Talk about this project").click();
  await chat.page.getByRole("radio", { name: /^A project/, checked: true }).waitFor();
  const change = JSON.stringify({ task_id: task.id, state: "in_progress" });
  await chat.say(`[call=create_onto_task {"title": "Ring the bell"}] [call=update_onto_task ${change}] [tokens=4000] [delay=20] go on`);
  // The answer is not over.
  await page.page.getByRole("region", { name: "in progress 1" }).getByRole("link", { name: "Measure the tide" }).waitFor();
  await page.page.getByRole("link", { name: "Ring the bell", exact: true }).waitFor();
  await chat.stop.waitFor();
  const link = page.page.getByRole("navigation", { name: "Parts of the project" }).getByRole("link", { name: /^Conversations/ });
  await link.getByRole("img", { name: "in progress" }).waitFor();
  await link.click();
  const conversation = page.page.getByRole("list", { name: "Conversations" }).getByRole("link");
  await conversation.getByRole("img", { name: "in progress" }).waitFor();
  await isAccessible(page, "the conversations of a project");
  await chat.stop.click();
  await chat.readsToTheEnd();
  await link.getByRole("img", { name: "in progress" }).waitFor({ state: "detached" });
  // A page that nothing happens on asks for nothing.
  const before = reads.filter((path) => path.startsWith("/v1/workspace")).length;
  assert(before < 30, `${before} reads of the workspace`);
  const id = await chat.conversation();
  await conversation.click();
  await page.page.waitForURL(`/c/${id}`);
}

/** A template is read as what it contains; its JSON is one click below. */
export async function reads_a_template({ person }) {
  const tab = await (await person()).open("/w/templates");
  const template = tab.page.getByRole("listitem").filter({ has: tab.page.getByRole("heading", { name: "Software product" }) });
  await template.getByText("2 goals · 3 plans · 6 tasks · 2 documents").waitFor();
  await template.getByText("Content", { exact: true }).click();
  await template.getByRole("heading", { name: /Discovery/ }).waitFor();
  await template.getByRole("listitem").filter({ hasText: /^Talk to five people who have the problem$/ }).waitFor();
  await template.getByText("Discovery supports Solve one problem well").waitFor();
  assert.equal(await template.locator("pre").isVisible(), false);
  await isAccessible(tab, "a template");
  await template.getByText("As JSON").click();
  await template.locator("pre", { hasText: '"plan_id": "discovery"' }).waitFor();
}

/** Where the system chooses the colours, the open part, the open task and what is late are still told apart. */
export async function reads_a_project_in_forced_colours({ person, base }) {
  const project = await create(base, "projects", { name: "Harbour" });
  const task = await create(base, "tasks", { project_id: project.id, title: "Measure the tide", priority: 5, due_at: today(-3) });
  await create(base, "tasks", { project_id: project.id, title: "Ring the bell", priority: 3, due_at: today(3) });
  for (const colorScheme of ["light", "dark"]) {
    const tab = await (await person({ forcedColors: "active", colorScheme, width: 1440 })).open(`/w/${project.id}/tasks/${task.id}`);
    const sections = tab.page.getByRole("navigation", { name: "Parts of the project" });
    const line = (name) => sections.getByRole("link", { name }).evaluate((link) => getComputedStyle(link).borderBlockEndColor);
    await sections.waitFor();
    assert.notEqual(await line("Tasks"), await line("Goals"), colorScheme);
    assert.equal(await line("Plans"), await line("Goals"));
    const look = (text, of) => tab.page.locator(".row", { hasText: text }).evaluate((row, of) => getComputedStyle(of ? row.querySelector(of) : row)[of ? "textDecorationLine" : "outlineStyle"], of);
    assert.deepEqual([await look("Measure the tide"), await look("Ring the bell")], ["solid", "none"]);
    assert.deepEqual([await look("Measure the tide", ".date-choice"), await look("Ring the bell", ".date-choice")], ["underline", "none"]);
  }
}
