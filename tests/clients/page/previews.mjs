// A reader sees files without saving them: CSV as a table, other texts as code.
import assert from "node:assert/strict";

import { ask } from "./asking.mjs";
import { isAccessible } from "./looks.mjs";

async function upload(base, name, content) {
  const headers = { "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name)}`, "content-type": "application/octet-stream" };
  const response = await fetch(`${base}/v1/files`, { method: "POST", headers, body: content });
  assert(response.ok, `${name}: ${response.status}`);
  return response.json();
}

/** German Excel: semicolons, decimal commas, quotes around a field with a line, and a formula, which stays a text. */
const TIDES = '\ufeffHafen;Hochwasser;Notiz\r\n"Köln; am Rhein";4,1;"zwei\nZeilen"\r\nBremen;3,9;=HYPERLINK("https://example.org")\r\n';
const PAGE = "<script>globalThis.isExecuted = true</script>\n<img src=x onerror='globalThis.isExecuted = true'>\n";
const LONG = `number,text\n${Array.from({ length: 60_000 }, (_, number) => `${number},row ${number}`).join("\n")}\n`;

/** Files of a message open beside the chat, on a phone and on a large screen; nothing of them is executed, and a large one is not read as a whole. */
export async function sees_files_of_a_message({ person, base }) {
  const files = [];
  for (const [name, content] of [["tides.csv", TIDES], ["page.html", PAGE], ["long.csv", LONG], ["main.rs", "fn main() {}\n"]]) files.push(await upload(base, name, content));
  const { run } = await ask(base, "POST", "/v1/runs", { input: [{ type: "text", text: "[tokens=2] read" }, ...files.map(({ id }) => ({ type: "file", file_id: id }))] });
  await (await fetch(`${base}/v1/runs/${run.id}/events`)).text();
  for (const options of [{}, { width: 390, height: 844, hasTouch: true, isMobile: true }]) {
    const tab = await (await person(options)).open(`/c/${run.conversation_id}`);
    const panel = (name) => tab.page.getByRole("dialog", { name });
    const ranges = [];
    tab.page.on("request", (request) => request.headers().range && ranges.push(request.headers().range));

    await tab.button("Show \u2068tides.csv\u2069").click();
    const table = panel("tides.csv").getByRole("region", { name: /^Table of/ });
    await table.getByRole("columnheader", { name: "Hafen" }).waitFor();
    const rows = await table.getByRole("row").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows, [
      ["Hafen", "Hochwasser", "Notiz"],
      ["Köln; am Rhein", "4,1", "zwei\nZeilen"],
      ["Bremen", "3,9", '=HYPERLINK("https://example.org")'],
    ]);
    await isAccessible(tab, "a table");
    assert(await tab.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await tab.page.keyboard.press("Escape");
    await panel("tides.csv").waitFor({ state: "detached" });

    await tab.button("Show \u2068page.html\u2069").click();
    const code = panel("page.html").getByRole("group", { name: /html/ });
    await code.filter({ hasText: "<script>" }).waitFor();
    assert.equal(await code.evaluate((code) => code.textContent), PAGE);
    assert.match(await code.evaluate((code) => getComputedStyle(code).fontFamily), /mono/i);
    assert.equal(await tab.page.evaluate(() => globalThis.isExecuted), undefined);
    await isAccessible(tab, "code");
    await tab.page.keyboard.press("Escape");

    await tab.button("Show \u2068long.csv\u2069").click();
    await panel("long.csv").getByText("These are the first 200 rows. Download the file to see all of it.").waitFor();
    assert.equal(await panel("long.csv").getByRole("row").count(), 200);
    await tab.page.keyboard.press("Escape");
    assert.deepEqual([...new Set(ranges)], ["bytes=0-262143"]);
    // The focus returns to the file.
    await tab.page.waitForFunction(() => document.activeElement?.textContent === "long.csv");
  }
}

/** A CSV document of a collection is a table, and the text that answers quote; source code has its language and its lines. */
export async function sees_documents_of_a_collection({ person, base }) {
  const collection = await ask(base, "POST", "/v1/collections", { name: "Harbour" });
  const documents = [];
  for (const [name, content] of [["tides.csv", "port,high\nBremen,3.9\n"], ["main.rs", "fn main() {\n    run();\n}\n"]]) {
    const file = await upload(base, name, content);
    const { document, run } = await ask(base, "POST", `/v1/collections/${collection.id}/documents`, { file_id: file.id });
    await (await fetch(`${base}/v1/runs/${run.id}/events`)).text();
    documents.push(document.id);
  }
  const tab = await (await person()).open(`/k/d/${documents[0]}`);
  await tab.page.getByRole("cell", { name: "Bremen" }).waitFor();
  await isAccessible(tab, "a document as a table");
  await tab.button("As text").click();
  const text = tab.page.getByRole("region", { name: /^Text of/ });
  await text.getByText("Bremen,3.9").waitFor();
  await tab.button("As a table").click();
  await tab.page.getByRole("columnheader", { name: "high" }).waitFor();
  // A cited passage is marked in the text.
  const cited = await (await person()).open(`/k/d/${documents[0]}?start=10&end=20`);
  await cited.page.locator("mark").waitFor();
  const code = await (await person()).open(`/k/d/${documents[1]}`);
  await code.text(/rust/).waitFor();
  const part = code.page.locator(".document-part");
  await part.getByText("run();").waitFor();
  assert.match(await part.evaluate((part) => getComputedStyle(part).fontFamily), /mono/i);
}
