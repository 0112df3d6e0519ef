// Figures of the page on this machine; nothing is asserted.
import { gzipSync } from "node:zlib";

/** The files that the browser loads before the reader can write, and the time until then. */
async function load(person) {
  const me = await person();
  await me.context.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (!document.getElementById("compose")) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => (globalThis.interactiveAt = performance.now())));
    }).observe(document, { childList: true, subtree: true });
  });
  const files = [];
  me.context.on("response", (response) => {
    if (/\/assets\//.test(response.url())) files.push(response);
  });
  const interactive = async (tab) => {
    await tab.page.waitForFunction(() => globalThis.interactiveAt);
    return tab.page.evaluate(() => Math.round(interactiveAt));
  };
  const tab = await me.open();
  const cold = await interactive(tab);
  await tab.page.waitForLoadState("networkidle");
  const sizes = await Promise.all(files.map(async (file) => ({ name: file.url().split("/").at(-1), gzip: gzipSync(await file.body()).length, sent: (await file.request().sizes()).responseBodySize })));
  await tab.page.reload();
  const warm = await interactive(tab);
  const sum = (of) => sizes.reduce((sum, size) => sum + size[of], 0);
  return { interactive_ms: { cold, warm }, first_load_bytes: { gzip: sum("gzip"), sent: sum("sent") }, files: sizes };
}

/** Frames per second while something happens, and the longest one. */
async function frames(tab, during) {
  await tab.page.evaluate(() => {
    const times = (globalThis.frameTimes = []);
    const count = (now) => {
      times.push(now);
      globalThis.counting = requestAnimationFrame(count);
    };
    globalThis.counting = requestAnimationFrame(count);
  });
  await during();
  return tab.page.evaluate(() => {
    cancelAnimationFrame(counting);
    const gaps = frameTimes.slice(1).map((time, index) => time - frameTimes[index]);
    const sorted = gaps.toSorted((one, other) => one - other);
    const at = (share) => Math.round(sorted[Math.floor((sorted.length - 1) * share)]);
    const seconds = (frameTimes.at(-1) - frameTimes[0]) / 1_000;
    return { per_second: Math.round(gaps.length / seconds), median_ms: at(0.5), p95_ms: at(0.95), longest_ms: at(1), seconds: Math.round(seconds * 10) / 10 };
  });
}

export async function measure({ person, reach }) {
  const loads = [];
  for (let turn = 0; turn < 3; turn += 1) loads.push(await load(person));
  reach("loaded");
  const tab = await (await person()).open();
  await tab.field.waitFor();
  const idle = await frames(tab, () => tab.page.waitForTimeout(2_000));
  await tab.say("[tokens=6500] [delay=5] hello");
  await tab.reads(20);
  const first = await frames(tab, () => tab.reads(1000));
  reach("streaming");
  await tab.reads(5500);
  reach("long");
  const last = await frames(tab, () => tab.reads(6400));
  await tab.readsToTheEnd();
  const characters = (await tab.shown())[0].length;
  const { files, first_load_bytes } = loads[0];
  return { first_load_bytes, files, interactive_ms: loads.map(({ interactive_ms }) => interactive_ms), frames: { idle, first_1000_tokens: first, at_5500_tokens: last, characters } };
}
