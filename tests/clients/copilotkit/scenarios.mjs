// Scenarios before CopilotKit's page.
import assert from "node:assert/strict";

/** Returns the messages of the page in their order, without the buttons around them. */
function shown(page) {
  const messages = page.locator("[data-testid=copilot-user-message], [data-testid=copilot-assistant-message]");
  return messages.evaluateAll((all) =>
    all.map((message) => {
      const role = message.dataset.testid.split("-")[1];
      const paragraphs = [...message.querySelectorAll("p")].map(({ textContent }) => textContent);
      return { role, text: role === "user" ? message.innerText : paragraphs.join("\n\n") };
    }),
  );
}

async function open(page) {
  await page.goto("/?thread=t", { waitUntil: "commit" });
  await page.getByTestId("copilot-chat-textarea").waitFor();
}

async function say(page, text) {
  await page.getByTestId("copilot-chat-textarea").fill(text);
  await page.getByTestId("copilot-send-button").click();
}

/** Waits until the page shows an answer of this text, and returns its messages. */
async function shows(page, text) {
  await page.waitForFunction((text) => {
    const answers = [...document.querySelectorAll("[data-testid=copilot-assistant-message]")];
    return answers.some((answer) => answer.textContent.includes(text));
  }, text);
  return shown(page);
}

/** Waits until the run that the page shows has ended: the button that stops it is the disabled one that sends. */
async function ends(page) {
  await page.locator("[data-testid=copilot-send-button]:disabled").waitFor();
}

/** Reloads the page in mid-answer, once for every two words. The runtime is replaced in the midst of it. */
export async function reloads({ page, site, given: { words }, reach }) {
  const answer = (count) => words.slice(0, count).join(" ");
  await open(page);
  await say(page, "Count");
  for (let count = 2; count <= words.length; count += 2) {
    reach("wants words");
    const messages = await shows(page, answer(count));
    assert.deepEqual(messages, [{ role: "user", text: "Count" }, { role: "assistant", text: answer(count) }]);
    if (count === words.length) break;
    if (count === words.length / 2 + 1) await site.startAgain();
    await page.reload({ waitUntil: "commit" });
    assert.deepEqual(await shows(page, answer(count)), messages, `after ${count / 2} reloads`);
  }
  await ends(page);
  return shown(page);
}

/** Approves a call after a reload, and lets the page execute a tool of its own. */
export async function answers({ page }) {
  await open(page);
  await say(page, "[approval=Sail?] [tokens=3] x");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.reload({ waitUntil: "commit" });
  await page.getByRole("button", { name: "Approve" }).click();
  await shows(page, "done: Sail?");
  await ends(page);
  await say(page, "[clienttool=teal] [tokens=3] x");
  await page.waitForFunction(() => document.body.dataset.painted);
  await shows(page, "painted teal");
  await ends(page);
  return { painted: await page.locator("body").getAttribute("data-painted"), shown: await shown(page) };
}

/** Stops an answer. */
export async function stops({ page }) {
  await open(page);
  await say(page, "[tokens=2000] [delay=50] x");
  await shows(page, "beacon");
  await page.getByTestId("copilot-send-button").click();
  await ends(page);
  return shown(page);
}
