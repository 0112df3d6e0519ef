// Plans on the page: a list of steps that fills in, the work of subagents in it, and drafts that wait for the reader.
import assert from "node:assert/strict";

const plan = (tab, goal) => tab.page.getByRole("group", { name: goal, exact: true });

const message = (input) => `[plan=${JSON.stringify(input)}] [tokens=5]`;

/** A plan fills in; a step opens to the running work of its subagent; a reload shows the same plan. */
export async function watches_a_plan({ person }) {
  const tab = await (await person()).open();
  await tab.choose("planner");
  const step = (step_number, description, more) => ({ step_number, description, ...more });
  const steps = [
    step(1, "[tokens=60] [delay=60] count", { executor_required: true }),
    step(2, "[fail] [tokens=4]", { executor_required: true }),
    step(3, "[tokens=3] write", { depends_on: [1] }),
    step(4, "[tokens=3] never", { depends_on: [2] }),
  ];
  await tab.say(message({ goal: "a report", steps }));
  const shown = plan(tab, "a report");
  await shown.getByText("0 of 4 done").waitFor();
  await tab.text("Executing step 1 of 4…").first().waitFor();
  await shown.getByRole("button", { name: /count/ }).click();
  const work = shown.getByRole("group", { name: "Work of a subagent" });
  await work.getByText(/This is Holdfast's/).waitFor();
  await work.getByText(/\b[a-z]+60\b/).waitFor();
  await tab.readsToTheEnd();
  await shown.getByText("2 of 4 done").waitFor();
  await shown.getByText("needs step 2, which failed").waitFor();
  await tab.page.reload();
  await tab.readsToTheEnd();
  await shown.getByText("2 of 4 done").waitFor();
  await shown.getByText("needs step 2, which failed").waitFor();
  assert.equal(await tab.answers.count(), 1);
}

/** A subagent is stopped in its own place, and the plan continues with the others. */
export async function stops_a_subagent({ person }) {
  const tab = await (await person()).open();
  await tab.choose("planner");
  const steps = [{ step_number: 1, description: "[tokens=900] [delay=50] count", executor_required: true }];
  await tab.say(message({ goal: "a report", steps }));
  const shown = plan(tab, "a report");
  await shown.getByRole("button", { name: /count/ }).click();
  await tab.button("Stop it", shown).click();
  await tab.readsToTheEnd();
  await shown.getByText("the subagent was cancelled", { exact: false }).waitFor();
}

/** Questions that end a run are answered below the answer, or left to the agent, also after a reload. */
export async function answers_the_questions_of_a_run({ person }) {
  const tab = await (await person()).open();
  await tab.choose("planner");
  await tab.say("[questions=Which ship?|When?]");
  await tab.readsToTheEnd();
  await tab.page.reload();
  const asked = tab.page.getByRole("group", { name: "Questions to you" });
  await asked.getByRole("textbox", { name: "When?" }).fill("today");
  await tab.button("Answer", asked).click();
  await tab.text("When?\ntoday").first().waitFor();
  await asked.waitFor({ state: "detached" });
  await tab.say("[questions=And now?]");
  await tab.button("You decide", asked).click();
  await tab.text("Decide for me, by your best judgement.").first().waitFor();
  await tab.readsToTheEnd();
}

/** A draft is changed and approved in its place. */
export async function changes_a_draft({ person }) {
  const tab = await (await person()).open();
  await tab.choose("planner");
  const steps = [
    { step_number: 1, description: "[tokens=2] first" },
    { step_number: 2, description: "[tokens=2] second" },
  ];
  await tab.say(message({ goal: "a report", execution_mode: "draft_only", steps }));
  const card = tab.page.getByRole("group", { name: "Approve the plan: a report" });
  await card.getByText("second").waitFor();
  // The card alone shows the draft, also after a reload.
  assert.equal(await tab.log.getByText("second", { exact: false }).filter({ visible: true }).count(), 2, "the reader's message, and the card");
  assert.equal(await plan(tab, "a report").count(), 0);
  await tab.page.reload();
  await card.getByText("second").waitFor();
  assert.equal(await plan(tab, "a report").count(), 0);
  await tab.button("Edit the steps", card).click();
  await card.getByRole("textbox", { name: "Step 1" }).fill("[tokens=3] better");
  await tab.button("Remove step 2", card).click();
  await tab.button("Approve with changes", card).click();
  await tab.readsToTheEnd();
  const shown = plan(tab, "a report");
  await shown.getByText("1 of 1 done").waitFor();
  await shown.getByText("better").waitFor();
}
