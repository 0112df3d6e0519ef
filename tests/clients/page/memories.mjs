// The page of memories: what agents remember is seen, found, changed, exported and deleted.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { isAccessible } from "./looks.mjs";

const send = async (base, method, path, body) => {
  const response = await fetch(`${base}${path}`, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert(response.ok, `${method} ${path}: ${response.status}`);
  return response.json();
};

/** An agent with a memory, which makes these calls in a new conversation; the conversation's id. */
async function remembers(base, agent, calls) {
  const { run } = await send(base, "POST", "/v1/runs", { agent_id: agent.id, input: `${calls} [tokens=5]` });
  const ended = await (await fetch(`${base}/v1/runs/${run.id}/wait?timeout_ms=60000`)).json();
  assert.equal(ended.status, "completed");
  return run.conversation_id;
}

const remember = (text, more = {}) => `[call=remember ${JSON.stringify({ text, ...more })}]`;

export async function keeps_memories({ person, base }) {
  const agent = await send(base, "POST", "/v1/agents", { name: "alma", memory: true });
  const source = await remembers(base, agent, `${remember("Likes plum cake")} ${remember("Lives in Bonn", { scope: "user", expires: "2099-12-31" })}`);
  const used = await remembers(base, agent, '[call=recall {"query": "plum"}]');
  const tab = await (await person()).open();
  await tab.list.getByRole("link", { name: "Memories", exact: true }).click();
  const item = (text) => tab.page.getByRole("main").getByRole("listitem").filter({ hasText: text });
  await item("Lives in Bonn").getByText("for all agents").waitFor();
  await item("Lives in Bonn").getByText(/^until .*31.*2099$/).waitFor();
  await isAccessible(tab, "memories");

  const search = tab.page.getByRole("searchbox", { name: "Search memories" });
  await search.fill("CAKE plum");
  await item("Lives in Bonn").waitFor({ state: "detached" });
  await search.fill("coffee");
  await tab.text("No memory has these words.").waitFor();
  await search.fill("");

  // Another program changes the memory meanwhile: the person sees both texts, and saves hers.
  await tab.button("Edit", item("Likes plum cake")).click();
  const field = tab.page.getByRole("textbox", { name: "Text", exact: true });
  await field.fill("Likes pear cake");
  const { items } = await (await fetch(`${base}/v1/users/me/memories`)).json();
  const { id } = items.find(({ text }) => text === "Likes plum cake");
  await send(base, "PATCH", `/v1/users/me/memories/${id}`, { text: "Likes apple cake" });
  await tab.button("Save").click();
  await tab.page.getByRole("alert").waitFor();
  await item("Likes apple cake").waitFor();
  await isAccessible(tab, "a memory that was changed meanwhile");
  await tab.button("Save").click();
  await field.waitFor({ state: "detached" });
  const pear = item("Likes pear cake");
  await pear.getByText("changed by you").waitFor();
  await tab.button("Earlier versions", pear).click();
  await pear.getByText("Likes apple cake").waitFor();
  await pear.getByText("Likes plum cake").waitFor();
  await isAccessible(tab, "versions of a memory");

  const [download] = await Promise.all([tab.page.waitForEvent("download"), tab.button("Export").click()]);
  const lines = (await readFile(await download.path(), "utf8")).trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ versions }) => versions.length).sort(), [1, 3]);

  // An answer leads to what it has used, and a memory to where it comes from.
  const other = await (await person()).open(`/c/${used}`);
  await other.page.getByRole("link", { name: "Used 1 memory" }).click();
  await other.text("The memory that the answer has used").waitFor();
  assert.equal(await other.page.getByRole("main").getByRole("listitem").filter({ hasText: "Lives in Bonn" }).count(), 0);
  await other.page.getByRole("link", { name: "The conversation" }).click();
  await other.page.waitForURL(`**/c/${source}*`);

  await tab.button("Delete", pear).click();
  const dialog = tab.page.getByRole("dialog", { name: "Delete this memory?" });
  await isAccessible(tab, "the question before a deletion");
  await tab.button("Delete", dialog).click();
  await pear.waitFor({ state: "detached" });
  await tab.button("Delete all").click();
  await tab.button("Delete all", tab.page.getByRole("dialog", { name: "Delete all memories?" })).click();
  await tab.text("No agent remembers anything of you.").waitFor();
  return (await (await fetch(`${base}/v1/users/me/memories`)).json()).items;
}

export async function reads_memories_on_a_phone({ person, base }) {
  const agent = await send(base, "POST", "/v1/agents", { name: "alma", memory: true });
  await remembers(base, agent, remember(`Likes ${"long".repeat(60)} words`));
  const tab = await (await person({ width: 360, height: 700, hasTouch: true, isMobile: true, colorScheme: "dark" })).open("/memories");
  const fits = async (what) => {
    assert(await tab.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), what);
    await isAccessible(tab, what);
  };
  await tab.button("Edit").waitFor();
  await fits("memories on a phone");
  await tab.button("Edit").click();
  await tab.page.getByRole("textbox", { name: "Text", exact: true }).waitFor();
  await fits("a memory that is edited on a phone");
  await tab.page.keyboard.press("Escape");
  await tab.button("Delete all").click();
  await tab.page.getByRole("dialog").waitFor();
  await fits("a question on a phone");
}

/** An unsaved change is there again after a reload, with the version that its writer has read. */
export async function keeps_a_change_of_a_memory({ person, base }) {
  const agent = await send(base, "POST", "/v1/agents", { name: "alma", memory: true });
  await remembers(base, agent, remember("Likes plum cake"));
  const tab = await (await person()).open("/memories");
  await tab.button("Edit").click();
  const field = tab.page.getByRole("textbox", { name: "Text", exact: true });
  await field.fill("Likes pear cake");
  const { items } = await (await fetch(`${base}/v1/users/me/memories`)).json();
  await send(base, "PATCH", `/v1/users/me/memories/${items[0].id}`, { text: "Likes apple cake" });
  await tab.page.reload();
  await field.waitFor();
  assert.equal(await field.inputValue(), "Likes pear cake");
  await tab.button("Save").click();
  await tab.page.getByRole("alert").waitFor();
  await tab.text("Likes apple cake").first().waitFor();
  await tab.button("Save").click();
  await field.waitFor({ state: "detached" });
  await tab.page.reload();
  await tab.text("Likes pear cake").waitFor();
  assert.equal(await field.count(), 0);
}
