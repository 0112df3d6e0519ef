// Questions of a run to its reader: approvals, and calls of the page's own tools.
import assert from "node:assert/strict";

const card = (tab) => tab.page.getByRole("group", { name: "Allow approval?" });

async function asks(tab) {
  await tab.say("[approval=send the report] [tokens=10] hello");
  await card(tab).getByText("send the report").waitFor();
}

export async function approves_after_a_reload({ person, reach }) {
  const tab = await (await person()).open();
  await asks(tab);
  await tab.page.reload();
  await card(tab).getByText("send the report").waitFor();
  reach("asked");
  await tab.button("Approve", card(tab)).click();
  await tab.readsToTheEnd();
  await tab.page.getByRole("button", { name: /approval\s+Approved/ }).waitFor();
  await tab.text(/done: send the report/).waitFor();
}

/** A run that waits is seen from another conversation: in the list, in the tab's title, and first when one asks for that. */
export async function is_asked_elsewhere({ person }) {
  const tab = await (await person()).open();
  await asks(tab);
  const path = `/c/${await tab.conversation()}`;
  await tab.button("New chat", tab.list).click();
  await tab.say("[tokens=5] something newer");
  await tab.readsToTheEnd();
  const link = tab.list.locator(`a[href="${path}"]`);
  await link.getByRole("img", { name: "needs you" }).waitFor();
  await tab.page.waitForFunction(() => document.title.startsWith("(1) "));
  const first = () => tab.list.locator(".item").getByRole("link").first().getAttribute("href");
  assert.notEqual(await first(), path);
  await tab.button("1 waits for you", tab.list).click();
  await tab.text("Waiting for you", tab.list).waitFor();
  assert.equal(await first(), path);
  await link.click();
  await tab.button("Approve", card(tab)).click();
  await tab.readsToTheEnd();
  await tab.button("1 waits for you", tab.list).waitFor({ state: "detached" });
  await tab.page.waitForFunction(() => !document.title.startsWith("("));
}

/** A reader sees characters that hide or turn text around before they approve a call. */
export async function sees_hidden_characters({ person }) {
  const tab = await (await person()).open();
  await tab.say("[approval=pay 10\u202e01\u200b] [tokens=10] hello");
  await card(tab).getByText("pay 10\\u202e01\\u200b").waitFor();
  await tab.button("Edit the input").click();
  const input = tab.page.getByRole("textbox", { name: "Input, as JSON" });
  assert.match(await input.inputValue(), /pay 10\\u202e01\\u200b/);
  // The editor has the typed text again.
  await input.fill('{"action": "pay 1"}');
  await input.press("Escape");
  await tab.button("Edit the input").click();
  assert.equal(await input.inputValue(), '{"action": "pay 1"}');
  await tab.button("Approve with changes").click();
  await tab.readsToTheEnd();
  const outcome = tab.page.getByRole("button", { name: /approval\s+Approved with changed input/ });
  await outcome.waitFor();
  await tab.page.reload();
  await outcome.waitFor();
}

export async function denies_with_a_reason({ person }) {
  const tab = await (await person()).open();
  await asks(tab);
  await tab.button("Deny", card(tab)).click();
  await tab.page.getByRole("textbox", { name: "Reason (optional)" }).fill("not today");
  await tab.button("Deny", card(tab)).click();
  await tab.readsToTheEnd();
  await tab.text("Denied: not today").waitFor();
  await tab.page.reload();
  await tab.text("Denied: not today").waitFor();
}

export async function approves_with_another_input({ person }) {
  const tab = await (await person()).open();
  await asks(tab);
  await tab.button("Edit the input").click();
  const input = tab.page.getByRole("textbox", { name: "Input, as JSON" });
  await input.fill("{");
  await tab.text("This is not valid JSON.").waitFor();
  assert(await tab.button("Approve with changes").isDisabled());
  // The server refuses an input that does not fit, and the reader can correct it.
  await input.fill('{"action": 5}');
  await tab.button("Approve with changes").click();
  await tab.text(/^That did not work: /).waitFor();
  await input.fill('{"action": "send the short report"}');
  await tab.button("Approve with changes").click();
  await tab.readsToTheEnd();
  await tab.text(/done: send the short report/).waitFor();
}

/** Two tabs show one question: the first answer counts, and the other tab reports it. */
export async function answers_too_late({ person }) {
  const [one, other] = [await person(), await person()];
  const first = await one.open();
  await asks(first);
  const path = `/c/${await first.conversation()}`;
  const [beside, late] = [await one.open(path), await other.open(path)];
  await Promise.all([beside, late].map((tab) => card(tab).waitFor()));
  // Somebody elsewhere hears nothing of the answer; the next tab does.
  await late.record("This was already answered elsewhere.");
  await first.button("Deny", card(first)).click();
  await first.button("Deny", card(first)).click();
  await Promise.all([first, beside].map((tab) => tab.readsToTheEnd()));
  await beside.page.getByRole("button", { name: /approval\s+Denied/ }).waitFor();
  await late.button("Approve", card(late)).click();
  await late.hasShown("This was already answered elsewhere.");
  await late.page.getByRole("button", { name: /approval\s+Denied/ }).waitFor();
  await late.readsToTheEnd();
}

/** A question with answers to choose from, one without, and one of a tool that this page does not know. */
export async function answers_questions({ person }) {
  const tab = await (await person()).open();
  await tab.choose("tester");
  const question = (name) => tab.page.getByRole("group", { name, exact: true });
  await tab.say('[call=ask_user {"question": "Which colour?", "options": ["blue", "red"]}] [tokens=5] hello');
  await question("Which colour?").waitFor();
  await tab.page.reload();
  await question("Which colour?").getByRole("radio", { name: "red" }).click();
  await tab.button("Answer", question("Which colour?")).click();
  await tab.page.getByRole("button", { name: /^You answered\s+red/ }).waitFor();
  await tab.readsToTheEnd();
  await tab.text(/ask_user: \{"answer":"red"\}/).waitFor();
  await tab.say("[clienttool=What is your name?] [tokens=5] hello");
  await question("What is your name?").getByRole("textbox", { name: "Your answer" }).fill("Ada");
  await tab.page.keyboard.press("Enter");
  await tab.readsToTheEnd();
  await tab.text(/ask_user: \{"answer":"Ada"\}/).waitFor();
  await tab.say("[clienttool=And now?] [tokens=5] hello");
  await tab.button("Skip", question("And now?")).click();
  await tab.readsToTheEnd();
  await tab.page.getByRole("button", { name: "Skipped" }).waitFor();
  await tab.button("New chat", tab.list).click();
  await tab.choose("Standard");
  await tab.say("[clienttool=Anything] [tokens=5] hello");
  const free = question("Anything");
  await free.getByRole("textbox", { name: "Your answer" }).fill('{"a": [1]}');
  await tab.button("Answer", free).click();
  await tab.readsToTheEnd();
  await tab.text(/scripted__clienttool: \{"a":\[1\]\}/).waitFor();
}

/** A typed answer is there again after another chat and after a reload. */
export async function keeps_a_typed_answer({ person }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=5] other");
  await tab.readsToTheEnd();
  await tab.button("New chat", tab.list).click();
  await tab.choose("tester");
  await tab.say("[clienttool=Which colour?] [tokens=5] hello");
  const field = tab.page.getByRole("group", { name: "Which colour?" }).getByRole("textbox", { name: "Your answer" });
  await field.fill("dark green");
  await tab.list.getByRole("link", { name: "[tokens=5] other" }).click();
  await tab.text("[tokens=5] other", tab.questions).waitFor();
  await tab.page.goBack();
  await field.waitFor();
  assert.equal(await field.inputValue(), "dark green");
  await tab.page.reload();
  await field.waitFor();
  assert.equal(await field.inputValue(), "dark green");
  await field.press("Enter");
  await tab.text(/ask_user: \{"answer":"dark green"\}/).waitFor();
  assert.equal(await tab.page.evaluate(() => localStorage.getItem("holdfast.drafts")), null);
}

/** An edited input and a reason are there again after a reload. */
export async function keeps_an_edited_input({ person }) {
  const tab = await (await person()).open();
  await asks(tab);
  await tab.button("Deny", card(tab)).click();
  const reason = tab.page.getByRole("textbox", { name: "Reason (optional)" });
  await reason.fill("not today");
  await tab.page.reload();
  await reason.waitFor();
  assert.equal(await reason.inputValue(), "not today");
  await reason.fill("");
  await tab.button("Back", card(tab)).click();
  await tab.button("Edit the input").click();
  const input = tab.page.getByRole("textbox", { name: "Input, as JSON" });
  await input.fill('{"action": "send the short report"}');
  await tab.page.reload();
  await input.waitFor();
  assert.equal(await input.inputValue(), '{"action": "send the short report"}');
  await tab.button("Approve with changes").click();
  await tab.readsToTheEnd();
  await tab.text(/done: send the short report/).waitFor();
  assert.equal(await tab.page.evaluate(() => localStorage.getItem("holdfast.drafts")), null);
}
