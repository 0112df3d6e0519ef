// Collections of documents: files that become documents, passages that a search finds, and answers that cite them.
import assert from "node:assert/strict";

import { isAccessible } from "./looks.mjs";

const TIDES = "# Tides\n\nHigh water comes at six in the morning. 🌊\n\n## Noon\n\nLow water comes at noon, when the quay is dry.\n";

async function call(base, method, path, body) {
  const response = await fetch(`${base}/v1/${path}`, { method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body) });
  assert(response.ok, `${method} ${path}: ${response.status}`);
  return response.status === 204 ? undefined : response.json();
}

/** Makes a collection with one document, as another program would, and waits until searches find it. */
async function collectionWith(base, text, name = "Harbour") {
  const collection = await call(base, "POST", "collections", { name });
  return { collection, document: await addText(base, collection, "tides.md", text) };
}

const item = (tab, name) => tab.page.getByRole("list", { name: "Documents" }).getByRole("listitem").filter({ hasText: name });
const mark = (within) => within.locator("mark");

async function addFile(tab, name, mimeType, content) {
  const [picker] = await Promise.all([tab.page.waitForEvent("filechooser"), tab.button("Add documents").click()]);
  await picker.setFiles({ name, mimeType, buffer: Buffer.from(content) });
}

/** Adds a text to a collection, as another program would, and waits for the end of its run. */
async function addText(base, collection, name, text) {
  const headers = { "content-disposition": `attachment; filename="${name}"`, "content-type": "application/octet-stream" };
  const file = await (await fetch(`${base}/v1/files`, { method: "POST", headers, body: text })).json();
  const { document, run } = await call(base, "POST", `collections/${collection.id}/documents`, { file_id: file.id });
  // The stream of the run's events ends with the run.
  await (await fetch(`${base}/v1/runs/${run.id}/events`)).text();
  return call(base, "GET", `documents/${document.id}`);
}

/** Whether all of an element is in sight. */
const isInSight = (element) =>
  element.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });

/** A person makes a collection, adds a document, finds a passage, and reads it at its place. */
export async function keeps_a_document({ person, base }) {
  const tab = await (await person()).open();
  await tab.list.getByRole("link", { name: "Knowledge", exact: true }).click();
  await tab.page.getByRole("heading", { name: "Knowledge", level: 1 }).waitFor();
  await isAccessible(tab, "no collections");
  await tab.button("New collection").last().click();
  await tab.page.getByRole("textbox", { name: "Name of the collection" }).fill("Harbour");
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("heading", { name: "Harbour", level: 1 }).waitFor();
  await addFile(tab, "tides.md", "text/markdown", TIDES);
  await item(tab, "tides.md").getByText("ready").waitFor();
  await isAccessible(tab, "a collection");
  await tab.page.getByRole("searchbox", { name: "Search this collection" }).fill("when is low water?");
  const hit = tab.page.getByRole("search").getByRole("link", { name: /tides\.md/ }).first();
  await hit.waitFor();
  await isAccessible(tab, "a found passage");
  await hit.press("Enter");
  const passage = mark(tab.page.getByRole("region", { name: /^Text of .*tides\.md/ }));
  await passage.first().waitFor();
  assert.match(await passage.first().textContent(), /Low water comes at noon/);
  assert(await isInSight(passage.first()));
  const url = new URL(tab.page.url());
  const [start, end] = ["start", "end"].map((name) => Number(url.searchParams.get(name)));
  assert.equal(await passage.first().textContent(), [...(await textOf(base, url.pathname.split("/").at(-1)))].slice(start, end).join(""));
  await isAccessible(tab, "a document at a passage");
  await tab.page.reload();
  await passage.first().waitFor();
  await tab.page.getByRole("link", { name: "Harbour", exact: true }).click();
  await item(tab, "tides.md").waitFor();
}

async function textOf(base, documentId) {
  return (await fetch(`${base}/v1/documents/${documentId}/text`)).text();
}

/** Files that are dropped together become documents; a broken one says why it has failed, and may be tried again. */
export async function says_why_a_document_fails({ person, base }) {
  const { collection } = await collectionWith(base, TIDES);
  const tab = await (await person({ colorScheme: "dark" })).open(`/k/${collection.id}`);
  await item(tab, "tides.md").waitFor();
  await tab.page.evaluate(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["%PDF-1.7\nThis is no document.\n"], "broken.pdf", { type: "application/pdf" }));
    transfer.items.add(new File(["Moor at the north quay."], "mooring.txt", { type: "text/plain" }));
    document.body.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: transfer }));
  });
  await item(tab, "mooring.txt").getByText("ready").waitFor();
  const broken = item(tab, "broken.pdf");
  await broken.getByText("failed").waitFor();
  const { items } = await call(base, "GET", `collections/${collection.id}/documents`);
  const { error, status } = items.find(({ title }) => title === "broken.pdf");
  assert.equal(status, "failed");
  await broken.getByText(error.message).waitFor();
  await isAccessible(tab, "a failed document");
  const tried = tab.page.waitForResponse((response) => /\/v1\/documents\/[^/]+\/retry$/.test(response.url()));
  await tab.page.getByRole("button", { name: /^Try again: .*broken\.pdf/ }).click();
  assert.equal((await tried).status(), 202);
  await broken.getByText(error.message).waitFor();
  await tab.page.getByRole("button", { name: /^Delete .*broken\.pdf/ }).click();
  const dialog = tab.page.getByRole("dialog", { name: /^Delete .*broken\.pdf/ });
  await dialog.waitFor();
  await isAccessible(tab, "a deletion to confirm");
  await tab.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await broken.count(), 1);
  await tab.page.getByRole("button", { name: /^Delete .*broken\.pdf/ }).click();
  await tab.button("Delete", dialog).click();
  await broken.waitFor({ state: "detached" });

  await tab.page.getByRole("link", { name: "Knowledge", exact: true }).last().click();
  await tab.page.getByRole("button", { name: /^Delete .*Harbour/ }).click();
  await tab.button("Delete", tab.page.getByRole("dialog")).click();
  await tab.text("No collection yet").waitFor();
  assert.deepEqual((await call(base, "GET", "collections")).items, []);
}

/** The server takes no more documents for a moment: the rest of the files waits, and follows by itself. */
export async function waits_for_the_server({ person, base }) {
  const collection = await call(base, "POST", "collections", { name: "Harbour" });
  const tab = await (await person()).open(`/k/${collection.id}`);
  let refusals = 0;
  await tab.page.route(/\/v1\/collections\/[^/]+\/documents$/, async (route) => {
    if (route.request().method() !== "POST" || refusals > 0) return route.continue();
    refusals += 1;
    await route.fulfill({ status: 429, headers: { "retry-after": "1", "content-type": "application/problem+json" }, body: JSON.stringify({ code: "too_many_runs", detail: "later", status: 429 }) });
  });
  await tab.button("Add documents").waitFor();
  const [picker] = await Promise.all([tab.page.waitForEvent("filechooser"), tab.button("Add documents").click()]);
  await picker.setFiles(["one.txt", "two.txt"].map((name) => ({ name, mimeType: "text/plain", buffer: Buffer.from(`The ${name} says high water.`) })));
  await tab.text("The server has enough to do. The rest follows by itself.").waitFor();
  await isAccessible(tab, "files that wait");
  await item(tab, "one.txt").getByText("ready").waitFor();
  await item(tab, "two.txt").getByText("ready").waitFor();
  assert.equal((await call(base, "GET", `collections/${collection.id}/documents`)).items.length, 2);
}

/** A phone shows a long text around a place, and more of it on demand, without a jump. */
export async function reads_a_long_text({ person, base }) {
  const lines = Array.from({ length: 6000 }, (_, index) => `Line ${index}: the tide 🌊 comes and goes.`);
  const { collection, document } = await collectionWith(base, lines.join("\n"));
  const text = await textOf(base, document.id);
  const start = [...text.slice(0, text.indexOf("Line 3000:"))].length;
  const end = start + [..."Line 3000: the tide 🌊 comes"].length;
  const reader = await person({ width: 360, height: 700, hasTouch: true, isMobile: true, colorScheme: "dark" });
  const tab = await reader.open(`/k/d/${document.id}?start=${start}&end=${end}`);
  const region = tab.page.getByRole("region", { name: /^Text of/ });
  await mark(region).waitFor();
  assert.equal(await mark(region).textContent(), "Line 3000: the tide 🌊 comes");
  assert(await isInSight(mark(region)));
  assert((await region.textContent()).length < 40_000, "the page shows a part of the text");
  await isAccessible(tab, "a long text");
  const place = async () => (await mark(region).boundingBox()).y;
  // The passage stays where it is while more text arrives above it.
  const before = await place();
  const first = await region.locator("[data-start]").first().getAttribute("data-start");
  await tab.button("Show earlier text").evaluate((button) => button.click());
  await tab.page.waitForFunction((first) => document.querySelector("[data-start]").dataset.start !== first, first);
  assert(Math.abs((await place()) - before) <= 1, "the passage has moved");
  await tab.button("Show later text").click();
  await region.getByText("Line 3600:").waitFor();
  for (const path of ["/k", `/k/${collection.id}`, `/k/d/${document.id}`]) {
    const page = await reader.open(path);
    await page.page.getByRole("heading", { level: 1 }).waitFor();
    await page.page.getByRole("img", { name: "Reading" }).first().waitFor({ state: "detached" });
    assert(await page.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path);
    await isAccessible(page, path);
  }
}

async function choose(tab, name) {
  await tab.page.getByRole("button", { name: /^Knowledge: / }).click();
  const dialog = tab.page.getByRole("dialog", { name: "Knowledge of this chat" });
  await dialog.getByRole("checkbox", { name, exact: true }).click();
  return dialog;
}

/** A chat answers from the collections that its reader has chosen, from its first message on. */
export async function chooses_knowledge({ person, base }) {
  const { collection } = await collectionWith(base, TIDES);
  const other = await call(base, "POST", "collections", { name: "Statutes" });
  const tab = await (await person()).open();
  await tab.button("Knowledge: none").waitFor();
  const dialog = await choose(tab, "Harbour");
  await isAccessible(tab, "a choice of collections");
  await tab.button("Use these", dialog).click();
  await tab.button("Knowledge: Harbour").waitFor();
  await tab.say("[tokens=5] When is high water?");
  await tab.readsToTheEnd();
  const conversation = await tab.conversation();
  const known = async () => (await call(base, "GET", `conversations/${conversation}`)).knowledge;
  assert.deepEqual(await known(), [collection.id]);
  assert.equal((await call(base, "GET", "conversations")).items.length, 1);
  await isAccessible(tab, "a chat with knowledge");
  await tab.page.reload();
  await tab.button("Knowledge: Harbour").waitFor();
  const changed = tab.page.waitForResponse((response) => response.request().method() === "PATCH");
  await tab.button("Use these", await choose(tab, "Statutes")).click();
  await changed;
  assert.deepEqual((await known()).sort(), [collection.id, other.id].sort());
  return { conversation };
}

/** An answer from documents has links in place of its marks, which show the passage beside the chat. */
export async function cites({ person, base }) {
  const { document } = await collectionWith(base, TIDES);
  const tab = await (await person()).open();
  await tab.button("Use these", await choose(tab, "Harbour")).click();
  await tab.say("[cite] When is low water?");
  await tab.readsToTheEnd();
  const chip = tab.answer.getByRole("paragraph").getByRole("link", { name: /^\[1\] tides\.md/ }).first();
  await chip.waitFor();
  assert.equal(await chip.textContent(), "[1]");
  const sources = tab.answer.getByRole("navigation", { name: "Sources" });
  await sources.getByRole("link", { name: /^1 tides\.md/ }).waitFor();
  await isAccessible(tab, "an answer with sources");
  await chip.press("Enter");
  const panel = tab.page.getByRole("dialog", { name: "tides.md" });
  await mark(panel).first().waitFor();
  assert(await isInSight(mark(panel).first()));
  assert.match(await mark(panel).first().textContent(), /water comes at/);
  await isAccessible(tab, "a source beside the chat");
  await tab.page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  // The focus returns to the mark.
  await tab.page.waitForFunction(() => document.activeElement?.classList.contains("cite"));
  await tab.page.reload();
  await chip.click();
  await panel.getByRole("link", { name: "Open the document" }).click();
  await mark(tab.page.getByRole("region", { name: /^Text of/ })).first().waitFor();
  assert.equal(new URL(tab.page.url()).pathname, `/k/d/${document.id}`);
  await tab.page.goBack();
  await tab.answer.waitFor();
  return { conversation: await tab.conversation() };
}

/** The list of documents says which have vectors, and why others lack them, in the reader's language. */
export async function shows_vectors({ person, base }) {
  const { collection } = await collectionWith(base, TIDES);
  await addText(base, collection, "some.txt", `The keel of oak holds the ship in any storm. ${"\n\n"}The unspeakable word of the harbour master is not told.`);
  await addText(base, collection, "none.txt", "An unspeakable word.");
  const notes = async (tab, expected) => {
    for (const [name, note] of Object.entries(expected)) await item(tab, name).getByText(note).waitFor();
  };
  const tab = await (await person({ width: 360, height: 700 })).open(`/k/${collection.id}`);
  await notes(tab, { "tides.md": /all vectors$/, "some.txt": /some vectors: the provider of vectors refused 1 of the passages/, "none.txt": /no vectors: / });
  assert(await tab.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await isAccessible(tab, "documents with and without vectors");
  const reader = await (await person({ locale: "zh-CN" })).open(`/k/${collection.id}`);
  const chinese = (name, note) => reader.page.getByRole("list", { name: "文档" }).getByRole("listitem").filter({ hasText: name }).getByText(note).waitFor();
  await chinese("tides.md", /向量齐全$/);
  await chinese("some.txt", /仅部分向量：the provider of vectors/);
  await chinese("none.txt", /没有向量：/);
}
