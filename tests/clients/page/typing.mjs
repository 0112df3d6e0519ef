// The message field and the keyboard.
import assert from "node:assert/strict";

/** Enter, Shift+Enter, blank text, and drafts. */
export async function types({ person }) {
  const me = await person();
  const tab = await me.open();
  assert(await tab.send.isDisabled());
  await tab.field.fill("  \n ");
  assert(await tab.send.isDisabled());
  await tab.field.press("Enter");
  await tab.field.fill("");
  await tab.field.pressSequentially("[tokens=5] one");
  const low = (await tab.field.boundingBox()).height;
  await tab.field.press("Shift+Enter");
  await tab.field.pressSequentially("two");
  assert((await tab.field.boundingBox()).height > low);
  await tab.field.press("Enter");
  await tab.readsToTheEnd();
  assert.equal(await tab.field.inputValue(), "");
  assert.match(await tab.questions.textContent(), /\[tokens=5\] one\ntwo/);
  assert.equal(await tab.questions.count(), 1);

  // A draft for each conversation, and one for the next new one.
  await tab.field.fill("not yet");
  await tab.page.reload();
  await tab.questions.waitFor();
  assert.equal(await tab.field.inputValue(), "not yet");
  await tab.button("New chat", tab.list).click();
  assert.equal(await tab.field.inputValue(), "");
  await tab.field.fill("something new");
  await tab.page.reload();
  assert.equal(await tab.field.inputValue(), "something new");
  await tab.list.getByRole("link", { name: /one/ }).click();
  await tab.questions.waitFor();
  assert.equal(await tab.field.inputValue(), "not yet");
}

/** The Enter that chooses what an input method offers sends nothing. */
export async function types_with_an_input_method({ person }) {
  const me = await person();
  const tab = await me.open();
  const keyboard = await me.context.newCDPSession(tab.page);
  await tab.field.focus();
  await keyboard.send("Input.imeSetComposition", { text: "nihao", selectionStart: 5, selectionEnd: 5 });
  assert.equal(await tab.field.inputValue(), "nihao");
  const enter = { key: "Enter", code: "Enter", windowsVirtualKeyCode: 229 };
  await keyboard.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...enter });
  await keyboard.send("Input.insertText", { text: "你好" });
  await keyboard.send("Input.dispatchKeyEvent", { type: "keyUp", ...enter });
  assert.equal(await tab.field.inputValue(), "你好");
  assert.equal(await tab.questions.count(), 0);
  await tab.field.press("Enter");
  await tab.text("你好", tab.questions).waitFor();
  await tab.readsToTheEnd();
}

/** The accessible name of the focused element. */
const focused = (tab) =>
  tab.page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim());

async function tabTo(tab, name, key = "Tab") {
  for (let steps = 0; steps < 60; steps += 1) {
    if ((await focused(tab)) === name) return;
    await tab.page.keyboard.press(key);
  }
  assert.fail(`${key} does not lead to ${name}`);
}

/** Everything without a mouse. */
export async function uses_the_keyboard_alone({ person }) {
  const tab = await (await person()).open();
  const { keyboard } = tab.page;
  // A reader can write at once.
  await tab.page.waitForFunction(() => document.activeElement?.id === "compose");
  await keyboard.type("[tokens=1500] [delay=50] first");
  await keyboard.press("Enter");
  await tab.reads(15);
  // Esc leaves the message field and stops nothing; only outside of it, it stops the answer.
  await keyboard.press("Escape");
  await tab.page.waitForFunction(() => document.activeElement === document.body);
  await tab.reads(40);
  await keyboard.press("Escape");
  await tab.readsToTheEnd();
  await keyboard.press("c");
  await keyboard.type("[approval=send the report] [tokens=5] second");
  await keyboard.press("Enter");
  await tab.page.getByRole("group", { name: "Allow approval?" }).waitFor();
  await tabTo(tab, "Approve", "Shift+Tab");
  await keyboard.press("Enter");
  await tab.readsToTheEnd();
  const first = await tab.conversation();

  await tabTo(tab, "New chat");
  await keyboard.press("Enter");
  await tab.page.waitForURL("/");
  await tab.page.waitForFunction(() => document.activeElement?.id === "compose");
  await keyboard.type("[tokens=5] third");
  await keyboard.press("Enter");
  await tab.readsToTheEnd();
  const second = await tab.conversation();
  // From a conversation that the list does not show yet, a step leads to the first of the list.
  await tab.list.getByRole("link", { name: "[tokens=5] third" }).waitFor();
  // With letters, when one is not writing, and as links.
  await keyboard.press("Escape");
  await keyboard.press("j");
  await tab.page.waitForURL(`/c/${first}`);
  await keyboard.press("k");
  await tab.page.waitForURL(`/c/${second}`);
  await tabTo(tab, "[tokens=1500] [delay=50] first");
  await keyboard.press("Enter");
  await tab.page.waitForURL(`/c/${first}`);
  await tab.page.waitForFunction(() => document.activeElement?.id === "compose");

  await keyboard.press("Escape");
  await keyboard.press("?");
  const shortcuts = tab.page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await shortcuts.waitFor();
  await keyboard.press("Escape");
  await shortcuts.waitFor({ state: "detached" });
  await keyboard.press("s");
  await tab.page.waitForFunction(() => document.activeElement?.type === "search");
  await keyboard.type("third");
  await tab.list.getByRole("link", { name: "[tokens=1500] [delay=50] first" }).waitFor({ state: "detached" });
  // In a field, letters are letters.
  assert.equal(await tab.page.getByRole("searchbox").inputValue(), "third");
  await keyboard.press("Escape");
  await keyboard.press("Escape");
  await keyboard.press("n");
  await tab.page.waitForURL("/");
}

/** Says something that a tool works on for some milliseconds, and then writes something else. */
async function interjects(tab, key, delay) {
  await tab.say(`[call=scripted__echo {"text": "ready", "delay_ms": ${delay}}] [tokens=40] first`);
  await tab.text("Answering. Enter adds to this answer; Ctrl+Enter asks next.").waitFor();
  await tab.page.getByRole("button", { name: /^Calling echo/ }).waitFor();
  await tab.field.fill("[tokens=5] second");
  await tab.field.press(key);
  assert.equal(await tab.field.inputValue(), "");
}

const order = (tab) => tab.log.getByRole("article").evaluateAll((articles) => articles.map((article) => article.getAttribute("aria-label")));

/** Enter while an answer is made adds the message to that answer. */
export async function steers({ person }) {
  const tab = await (await person()).open();
  await tab.record("Will be read at the next step.");
  await interjects(tab, "Enter", 6_000);
  await tab.hasShown("Will be read at the next step.");
  await tab.readsToTheEnd();
  assert.equal(await tab.text("Will be read at the next step.").count(), 0);
  assert.deepEqual(await order(tab), ["You said", "You said", "Assistant"]);
  await tab.page.reload();
  await tab.readsToTheEnd();
  assert.deepEqual(await order(tab), ["You said", "You said", "Assistant"]);
}

/** A message that no run has read can be taken back. */
export async function takes_back({ person }) {
  const tab = await (await person()).open();
  await interjects(tab, "Enter", 60_000);
  await tab.button("Take back").click();
  await tab.page.waitForFunction(() => document.querySelector("#compose")?.value === "[tokens=5] second");
  await tab.stop.click();
  await tab.readsToTheEnd();
  assert.deepEqual(await order(tab), ["You said", "Assistant"]);
}

/** Ctrl+Enter while an answer is made asks the next question. */
export async function asks_next({ person }) {
  const tab = await (await person()).open();
  await interjects(tab, "Control+Enter", 6_000);
  await tab.text("Will be answered next.").waitFor();
  await tab.answers.nth(1).waitFor();
  await tab.readsToTheEnd();
  assert.deepEqual(await order(tab), ["You said", "Assistant", "You said", "Assistant"]);
}

/** An installation may lock the field while an answer is made. */
export async function finds_the_field_locked({ person }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=60] [delay=50] first");
  await tab.text("Answering. The field is locked until the answer is complete.").waitFor();
  assert(await tab.field.isDisabled());
  await tab.readsToTheEnd();
  assert(await tab.field.isEnabled());
  await tab.page.waitForFunction(() => document.activeElement?.id === "compose");
}

/** Without an open chat, a pasted or dropped file is refused in words, and the page stays. */
export async function brings_a_file({ person }) {
  const tab = await (await person()).open("/w");
  await tab.page.getByRole("button", { name: "New project" }).first().waitFor();
  const bring = (kind) =>
    tab.page.evaluate((kind) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(["x"], "x.txt", { type: "text/plain" }));
      const options = { bubbles: true, cancelable: true };
      const event = kind === "paste" ? new ClipboardEvent(kind, { ...options, clipboardData: transfer }) : new DragEvent(kind, { ...options, dataTransfer: transfer });
      return !document.body.dispatchEvent(event);
    }, kind);
  const said = tab.text("Files can be added in a conversation.");
  assert(await bring("dragover"));
  assert.equal(await said.count(), 0);
  assert(await bring("paste"));
  await said.waitFor();
  assert(await bring("drop"));
  await said.nth(1).waitFor();
}

const dictate = (tab) => tab.button("Dictate. The maker of your browser may hear what you say.");

/** Dictation that does not work says why, and can be tried again. */
export async function dictates_in_vain({ person }) {
  const me = await person();
  await me.context.addInitScript(() => {
    globalThis.SpeechRecognition = class {
      start() {
        setTimeout(() => {
          this.onerror({ error: failure });
          this.onend();
        });
      }
      abort() {}
    };
  });
  const tab = await me.open();
  const told = tab.page.getByRole("status");
  const reasons = {
    "not-allowed": "The browser does not allow the microphone.",
    network: "The browser's dictation service cannot be reached.",
    "audio-capture": "The browser finds no microphone.",
    "phrases-not-supported": "Dictating did not work.",
  };
  // Silence is no failure.
  for (const [failure, reason] of [["no-speech"], ...Object.entries(reasons)]) {
    await tab.page.evaluate((failure) => (globalThis.failure = failure), failure);
    await dictate(tab).click();
    if (reason) await tab.text(reason, told).waitFor();
    await tab.button("Stop dictating").waitFor({ state: "detached" });
    if (!reason) assert.equal(await told.locator(".toast").count(), 0);
  }
  assert.equal(await tab.field.inputValue(), "");
}

/** A browser that cannot dictate offers nothing. */
export async function cannot_dictate({ person }) {
  const me = await person();
  const tab = await me.open();
  await dictate(tab).waitFor();
  await me.context.addInitScript(() => {
    delete globalThis.SpeechRecognition;
    delete globalThis.webkitSpeechRecognition;
  });
  await tab.page.reload();
  await tab.field.waitFor();
  assert.equal(await dictate(tab).count(), 0);
}
