// Scenarios before the page.
import assert from "node:assert/strict";

/** Returns the messages of the page in their order. */
function shown(page) {
  return page.locator("p").evaluateAll((all) => all.map((p) => ({ role: p.dataset.role, text: p.textContent })));
}

async function open(page) {
  await page.goto("/", { waitUntil: "commit" });
  await page.locator("main[data-ready=true]").waitFor();
}

async function say(page, text) {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

/** Waits until the newest answer has this text, and returns the messages. */
async function shows(page, text) {
  await page.waitForFunction((text) => [...document.querySelectorAll("p[data-role=ai]")].at(-1)?.textContent === text, text);
  return shown(page);
}

const ends = (page) => page.locator("main[data-loading=false]").waitFor();

async function reload(page) {
  await page.reload({ waitUntil: "commit" });
  await page.locator("main[data-ready=true]").waitFor();
}

/** Reloads the page in mid-answer, and cuts its streams, in turns. */
export async function breaks({ page, site, given: { words }, reach }) {
  const answer = (count) => words.slice(0, count).join(" ");
  await open(page);
  await say(page, "Count");
  for (let count = 2; count <= words.length; count += 2) {
    reach("wants words");
    const messages = await shows(page, answer(count));
    assert.deepEqual(messages, [{ role: "human", text: "Count" }, { role: "ai", text: answer(count) }]);
    if (count === words.length) break;
    if (count % 4 === 0) assert.ok(site.cut() > 0, "the page had streams");
    else {
      await reload(page);
      assert.deepEqual(await shows(page, answer(count)), messages, `after ${count} words`);
      assert.equal(await page.locator("main").getAttribute("data-loading"), "true");
    }
  }
  await ends(page);
  const messages = await shown(page);
  await reload(page);
  await page.locator("p[data-role=ai]").waitFor();
  assert.deepEqual(await shown(page), messages, "after the end");
  return { messages };
}

/** Approves a call after a reload, refuses another one, and reads an answer after both on the same stream. */
export async function answers({ page }) {
  await open(page);
  await say(page, "[approval=Sail?] [tokens=3] x");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await ends(page);
  await reload(page);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator("fieldset").waitFor({ state: "detached" });
  await page.waitForFunction(() => document.querySelectorAll("p[data-role=ai]").length === 2);
  await ends(page);
  const approved = await shown(page);
  await say(page, "[approval=Row?] [tokens=3] x");
  await page.getByRole("button", { name: "Refuse" }).click();
  await page.waitForFunction(() => document.querySelectorAll("p[data-role=ai]").length === 4);
  await ends(page);
  await say(page, "[tokens=2] and then");
  await page.waitForFunction(() => document.querySelectorAll("p[data-role=ai]").length === 5);
  await ends(page);
  return { approved, messages: await shown(page), error: await page.getByRole("alert").count() };
}

/** Stops an answer, and then gets another one. */
export async function stops({ page }) {
  await open(page);
  await say(page, "[tokens=2000] [delay=50] x");
  await page.waitForFunction(() => document.querySelector("p[data-role=ai]")?.textContent.length > 40);
  await page.getByRole("button", { name: "Stop" }).click();
  await ends(page);
  await say(page, "[tokens=2] again");
  await page.waitForFunction(() => document.querySelectorAll("p[data-role=ai]").length === 2);
  await ends(page);
  return { messages: await shown(page), thread: await page.locator("main").getAttribute("data-thread") };
}

/** Shows why a run has failed before its first output, and why the server has refused one. */
export async function fails({ page, given: { refused } }) {
  await open(page);
  await say(page, "[fail] x");
  await page.getByRole("alert").waitFor();
  const failed = await page.getByRole("alert").textContent();
  await ends(page);
  await say(page, refused);
  await page.waitForFunction((failed) => {
    const alert = document.querySelector("[role=alert]");
    return alert && alert.textContent !== failed;
  }, failed);
  return { failed, refused: await page.getByRole("alert").textContent() };
}
