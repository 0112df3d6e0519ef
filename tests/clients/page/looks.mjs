// How the page looks: for axe, on a phone, and in the pictures of the documentation.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const axe = await readFile(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Finds nothing that somebody could not use. */
export async function isAccessible(tab, what) {
  await tab.page.evaluate(axe);
  const { violations } = await tab.page.evaluate(async () => {
    // An element in a transition has no final colours, and a transition may begin while axe looks.
    const still = new CSSStyleSheet();
    still.replaceSync("*, ::before, ::after { transition: none !important }");
    document.adoptedStyleSheets.push(still);
    // An animation by scrolling never ends where nothing scrolls.
    const animations = document.getAnimations().filter(({ effect, timeline }) => timeline === document.timeline && effect.getComputedTiming().iterations !== Infinity);
    await Promise.all(animations.map(({ finished }) => finished.catch(() => {})));
    try {
      return await axe.run(document);
    } finally {
      document.adoptedStyleSheets.pop();
    }
  });
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("\n")}`);
  assert.deepEqual(found, [], what);
}

export async function is_accessible({ person, given }) {
  const tab = await (await person({ colorScheme: given.colours })).open();
  await tab.text("What would you like to find out?").waitFor();
  await isAccessible(tab, "an empty chat");
  await tab.say("[approval=send the report] [tokens=5] hello");
  const card = tab.page.getByRole("group", { name: "Allow approval?" });
  await card.waitFor();
  await isAccessible(tab, "an approval");
  await tab.button("Edit the input", card).click();
  await isAccessible(tab, "an approval that is edited");
  await tab.button("Back", card).click();
  await tab.button("Deny", card).click();
  await isAccessible(tab, "an approval that is denied");
  await tab.button("Deny", card).click();
  await tab.readsToTheEnd();
  await tab.say('[think] [call=scripted__echo {"text": "hi"}] [tokens=5000] [delay=10] hello');
  await tab.answers.nth(1).waitFor();
  await tab.reads(20);
  await isAccessible(tab, "while it streams");
  await tab.stop.click();
  await tab.readsToTheEnd();
  await tab.answer.getByRole("button", { name: /echo/ }).click();
  await isAccessible(tab, "a tool call");
  await tab.say("[tokens=6] [fail] hello");
  await tab.button("Try again").waitFor();
  await isAccessible(tab, "a failure");
  await tab.button("Try again").click();
  await tab.answer.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await isAccessible(tab, "an answer with two versions");
  await tab.act("Edit", tab.questions.last());
  await isAccessible(tab, "a message that is edited");
  await tab.page.keyboard.press("Escape");
  await tab.button("Keyboard shortcuts").click();
  await tab.page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await isAccessible(tab, "the shortcuts");
  await tab.page.keyboard.press("Escape");
  await tab.button("More", tab.page.getByRole("main")).click();
  await tab.page.getByRole("menuitem", { name: "Rename" }).waitFor();
  await isAccessible(tab, "a menu");
}

/** Everything is there, and nothing is wider than the phone. */
export async function fits_on_a_phone({ person }) {
  const tab = await (await person({ width: 360, height: 700, hasTouch: true, isMobile: true })).open();
  const fits = async (what) => assert(await tab.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), what);
  await tab.text("What would you like to find out?").waitFor();
  await fits("an empty chat");
  await tab.say(`[call=scripted__echo {"text": "${"long".repeat(60)}"}] [tokens=80] [delay=1] ${"wide".repeat(60)}`);
  await tab.reads(80);
  await tab.readsToTheEnd();
  await fits("an answer");
  await tab.button("Answer again", tab.answer).click();
  const versions = tab.answer.getByRole("group", { name: "Version 2 of 2" });
  await versions.waitFor();
  await fits("an answer with two versions");
  for (const button of await versions.getByRole("button").all()) {
    const { width, height } = await button.boundingBox();
    assert(Math.min(width, height) >= 44, "fingers can press it");
  }
  await tab.say("[approval=send the report] [tokens=5]");
  const card = tab.page.getByRole("group", { name: "Allow approval?" });
  await card.waitFor();
  await fits("an approval");
  await tab.button("Approve", card).click();
  await tab.readsToTheEnd();
  await isAccessible(tab, "a phone");
  const drawer = tab.page.getByRole("dialog", { name: "Conversations" });
  await tab.button("Show conversations").click();
  await drawer.waitFor();
  await isAccessible(tab, "a phone's list");
  await tab.button("New chat", drawer).click();
  await drawer.waitFor({ state: "detached" });
  await tab.text("What would you like to find out?").waitFor();
  await tab.button("Show conversations").click();
  await drawer.locator(".item").getByRole("link").first().click();
  await drawer.waitFor({ state: "detached" });
  await tab.reads(80, tab.answers.first());
  await fits("a conversation");
}

/** On a phone a wide table scrolls inside its own box; the page stays as wide as the phone. */
export async function scrolls_a_wide_table({ person }) {
  const width = 360;
  const tab = await (await person({ width, height: 700, hasTouch: true, isMobile: true })).open();
  await tab.say("A table, please.");
  await tab.readsToTheEnd();
  const box = tab.answer.getByRole("group", { name: "Table" });
  const seen = await box.evaluate((box) => {
    const lines = (cell) => {
      const { lineHeight, paddingBlockStart, paddingBlockEnd } = getComputedStyle(cell);
      return (cell.clientHeight - parseFloat(paddingBlockStart) - parseFloat(paddingBlockEnd)) / parseFloat(lineHeight);
    };
    const around = [];
    for (let element = box.parentElement; element; element = element.parentElement) around.push(element);
    return {
      ends: [box, ...document.querySelectorAll("article p, form button")].map((element) => element.getBoundingClientRect().right),
      wider: around.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map(({ className }) => className),
      hidden: box.scrollWidth - box.clientWidth,
      wrapped: [...box.querySelectorAll("th, td")].filter((cell) => lines(cell) > 1.5).map(({ textContent }) => textContent),
    };
  });
  // A phone's browser zooms out of a page that is too wide, so that `innerWidth` grows with it.
  assert.equal(await tab.page.evaluate(() => innerWidth), width);
  assert(Math.max(...seen.ends) <= width, `what ends at ${seen.ends}`);
  assert.deepEqual(seen.wider, [], "nothing around the table scrolls to the side");
  assert(seen.hidden > width, "most of the table is out of sight");
  assert.deepEqual(seen.wrapped, [], "the columns keep their width");

  // Both edges keep their border, and the last column can be read to its end.
  const edges = await box.evaluate((box) => {
    const { borderInlineStartWidth, borderInlineEndWidth, maskImage } = getComputedStyle(box);
    box.scrollLeft = box.scrollWidth;
    const last = box.querySelector("th:last-child").getBoundingClientRect().right;
    const isRead = last <= box.getBoundingClientRect().right;
    box.scrollLeft = 0;
    return { start: borderInlineStartWidth, end: borderInlineEndWidth, mask: maskImage, isRead };
  });
  assert.deepEqual(edges, { start: "1px", end: "1px", mask: "none", isRead: true });

  await box.focus();
  await tab.page.keyboard.press("ArrowRight");
  await tab.page.waitForFunction((box) => box.scrollLeft > 0, await box.elementHandle());
  assert.equal(await tab.page.evaluate(() => scrollX), 0);
}

/** Where the system chooses the colours, the dots of the list are still seen. */
export async function sees_the_dots_in_forced_colours({ person }) {
  for (const colorScheme of ["light", "dark"]) {
    const tab = await (await person({ forcedColors: "active", colorScheme })).open();
    await tab.say("[approval=send the report] [tokens=5] hello");
    await tab.page.getByRole("group", { name: "Allow approval?" }).waitFor();
    await tab.button("New chat", tab.list).click();
    await tab.say("[tokens=1500] [delay=50] something newer");
    for (const name of ["needs you", "in progress"]) {
      const dot = tab.list.getByRole("link").getByRole("img", { name }).first();
      await dot.waitFor();
      const colours = await dot.evaluate((dot) => {
        const colours = [];
        for (let element = dot; element; element = element.parentElement) colours.push(getComputedStyle(element).backgroundColor);
        return colours.filter((colour) => !/^rgba.*, 0\)$/.test(colour));
      });
      assert.notEqual(colours[0], colours[1], `${name}, ${colorScheme}`);
    }
    // Without backgrounds, borders tell the elements apart.
    const bubble = await tab.questions.first().locator(".bubble").evaluate((bubble) => getComputedStyle(bubble).borderTopWidth);
    const current = await tab.list.locator(".item[data-current]").evaluate((item) => getComputedStyle(item).outlineStyle);
    assert.deepEqual([bubble, current], ["1px", "solid"], colorScheme);
    // A press right after Send is its double click, and stops nothing.
    await tab.reads(30);
    await tab.stop.click();
    await tab.readsToTheEnd();
  }
}
