// The text of a model is text: the page runs none of it.
import assert from "node:assert/strict";

/** Everything in the messages that is not there to be read. */
const harm = (tab) =>
  tab.log.evaluate((log) => {
    const found = [...log.querySelectorAll("script, iframe, frame, object, embed, img, image, video, audio, source, link, meta, base, style, form[action], math, template, portal, foreignObject, use, animate")];
    const harmful = found.map(({ outerHTML }) => outerHTML);
    for (const element of log.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        if (/^on|^style$|^srcdoc$|^action$|^formaction$|^ping$/i.test(name)) harmful.push(`${name}=${value}`);
        if (/^(href|src|xlink:href|srcset|poster|data|background)$/i.test(name) && !/^(https?:|mailto:|#)/.test(value)) harmful.push(`${name}=${value}`);
      }
    }
    for (const link of log.querySelectorAll("a[target]")) if (!/noopener/.test(link.rel)) harmful.push(link.outerHTML);
    return { harmful, done: Object.keys(globalThis).filter((name) => name.startsWith("pwned")) };
  });

export async function reads_hostile_text({ person, given }) {
  const me = await person({ colorScheme: "dark" });
  const tab = await me.open();
  await tab.say(given.text);
  await tab.text("The end of the hostile text.", tab.answer).waitFor();
  await tab.readsToTheEnd();
  assert.deepEqual(await harm(tab), { harmful: [], done: [] });
  await tab.page.reload();
  await tab.text("The end of the hostile text.", tab.answer).waitFor();
  assert.deepEqual(await harm(tab), { harmful: [], done: [] });
  // A link to another site opens its own tab.
  const links = await tab.log.getByRole("link").evaluateAll((links) => links.filter(({ target }) => target !== "_blank").map(({ href }) => href));
  assert.deepEqual(links.filter((href) => !href.startsWith(`${me.base}/`)), []);
  assert.equal(await tab.page.evaluate(() => document.querySelectorAll("title").length), 1);
}
