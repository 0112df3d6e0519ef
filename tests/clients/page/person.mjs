// A person with a browser: finds things by their roles and by what is written on them, and notices errors that the page hides.
import assert from "node:assert/strict";

export class Person {
  /** The page's faults: requests to other origins, errors, violations of its own policy. */
  strange = [];
  pages = [];

  constructor(context, base, step) {
    this.context = context;
    this.base = base;
    this.step = step;
  }

  static async at(browser, base, step, { width = 1200, height = 800, withClock, ...options } = {}) {
    // The browser has no graphics card, and would paint each step of an endless animation by itself.
    const usual = { baseURL: base, locale: "en-GB", viewport: { width, height }, reducedMotion: "reduce" };
    const context = await browser.newContext({ ...usual, ...options });
    context.setDefaultTimeout(40_000);
    const person = new Person(context, base, step);
    // A clock that can be put forward; by itself it goes like any other.
    if (withClock) await context.clock.install();
    await person.#watch();
    return person;
  }

  async #watch() {
    const { origin } = new URL(this.base);
    this.context.on("request", (request) => {
      const url = new URL(request.url());
      if (url.origin !== origin && url.protocol !== "data:" && url.protocol !== "blob:") this.strange.push(`a request to ${url}`);
    });
    this.context.on("page", (page) => {
      page.on("pageerror", (error) => this.strange.push(`an error: ${error.stack}`));
      page.on("dialog", (dialog) => {
        this.strange.push(`a dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on("console", (message) => {
        // The browser reports a refusal of the network by itself.
        const isOfNetwork = /^Failed to load resource|net::ERR_/.test(message.text());
        if (["error", "warning"].includes(message.type()) && !isOfNetwork) this.strange.push(`on the console: ${message.text()}`);
      });
    });
    await this.context.exposeBinding("tellOfViolation", (_, what) => this.strange.push(`a violation of the policy: ${what}`));
    await this.context.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) => tellOfViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    });
  }

  hasSeenNothingStrange() {
    assert.deepEqual(this.strange, []);
  }

  /** Returns the text on the person's screens, for the report of a failure. */
  async describe() {
    const seen = this.pages.map(async ({ page }) => `${page.url()}\n${await page.locator("body").ariaSnapshot()}`);
    return [...this.strange, ...(await Promise.all(seen))].join("\n\n");
  }

  /** A new tab at an address of the page. */
  async open(path = "/") {
    this.step("opens");
    const tab = new Tab(await this.context.newPage(), this.step);
    this.pages.push(tab);
    await tab.page.goto(path);
    return tab;
  }
}

/** One tab with the chat page. */
export class Tab {
  constructor(page, step) {
    this.page = page;
    this.step = step;
    const composer = page.getByRole("form", { name: "Message", exact: true });
    this.field = composer.getByRole("textbox", { name: "Message", exact: true });
    this.send = composer.getByRole("button", { name: "Send", exact: true });
    this.stop = composer.getByRole("button", { name: "Stop", exact: true });
    this.answers = page.getByRole("article", { name: "Assistant" });
    this.answer = this.answers.last();
    this.questions = page.getByRole("article", { name: "You said" });
    this.list = page.getByRole("navigation", { name: "Conversations" });
    this.log = page.getByRole("log", { name: "Messages" });
  }

  button(name, within = this.page) {
    return within.getByRole("button", { name, exact: true });
  }

  text(text, within = this.page) {
    return within.getByText(text);
  }

  async say(text) {
    this.step("says");
    await this.field.fill(text);
    await this.send.click();
  }

  /** Does something with a message, whose buttons come when one points at it. */
  async act(name, message) {
    await message.getByRole("paragraph").first().hover();
    await this.button(name, message).click();
  }

  /** Chooses whom a new chat is with. */
  async choose(agent) {
    await this.page.getByRole("button", { name: /^Agent: / }).click();
    await this.page.getByRole("menu", { name: /^Agent: / }).getByText(agent, { exact: true }).click();
    await this.page.getByRole("button", { name: new RegExp(`^Agent: .*${agent}`) }).waitFor();
  }

  /** Waits until a word of the scripted model's newest answer is there: each carries its number. */
  async reads(count, answer = this.answer) {
    this.step("reads");
    const paragraph = answer.getByRole("paragraph").filter({ hasText: new RegExp(`[a-z]${count}\\b`) });
    await paragraph.first().waitFor();
  }

  /** Waits until the newest answer is whole: then one may do something with it. */
  async readsToTheEnd() {
    this.step("reads to the end");
    await this.answer.getByRole("group", { name: "Message actions" }).waitFor();
    await this.stop.waitFor({ state: "detached" });
  }

  /** Remembers from now on every text with this in it, be it there for a moment. */
  async record(text) {
    await this.page.evaluate((text) => {
      globalThis.recorded = [];
      const keep = ({ textContent }) => textContent.includes(text) && recorded.push(textContent);
      const observer = new MutationObserver((changes) => changes.forEach(({ target, addedNodes }) => [target, ...addedNodes].forEach(keep)));
      observer.observe(document.body, { childList: true, characterData: true, subtree: true });
    }, text);
  }

  recorded() {
    return this.page.evaluate(() => recorded);
  }

  /** Waits until what is recorded has been there. */
  async hasShown(text) {
    await this.page.waitForFunction((text) => recorded.some((seen) => seen.includes(text)), text);
  }

  /** The texts of the answers. */
  shown() {
    return this.answers.evaluateAll((answers) =>
      answers.map((answer) => [...answer.querySelectorAll("p")].map((paragraph) => paragraph.textContent.trim()).join("\n\n")),
    );
  }

  /** The conversation's id, from the address, once there is one. */
  async conversation() {
    await this.page.waitForURL(/\/c\/[0-9a-f-]+$/);
    return new URL(this.page.url()).pathname.split("/").at(-1);
  }
}
