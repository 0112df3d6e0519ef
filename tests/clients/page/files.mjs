// Files of messages: pasted, dropped and chosen ones, uploads that break off, and what a message shows of its files.
import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";

import { isAccessible } from "./looks.mjs";

/** Pastes or drops a file where the message is written. Its content is a text, a picture, or this many bytes of text. */
const bring = (tab, how, name, content) =>
  tab.page.evaluate(
    async ([how, name, content]) => {
      const picture = async () => {
        const canvas = Object.assign(document.createElement("canvas"), { width: 320, height: 240 });
        const context = canvas.getContext("2d");
        context.fillStyle = "teal";
        context.fillRect(0, 0, 320, 240);
        return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
      };
      const bytes = content === "picture" ? await picture() : typeof content === "number" ? "tide\n".repeat(content / 5) : content;
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], name, { type: content === "picture" ? "image/png" : "text/plain" }));
      const options = { bubbles: true, cancelable: true };
      const event = how === "paste" ? new ClipboardEvent(how, { ...options, clipboardData: transfer }) : new DragEvent(how, { ...options, dataTransfer: transfer });
      (document.activeElement ?? document.body).dispatchEvent(event);
    },
    [how, name, content],
  );

const tray = (tab) => tab.page.getByRole("form", { name: "Message", exact: true }).getByRole("list", { name: "Files of this message" });
const item = (tab, name) => tray(tab).getByRole("listitem").filter({ hasText: name });
const filesOf = (message) => message.getByRole("list", { name: "Files of this message" });
/** Waits until the file is on the server. */
const uploaded = (tab, name) => tab.page.getByRole("button", { name: new RegExp(`^Remove .*${name}`) }).waitFor();

/** Waits until the browser has drawn the picture. */
async function isDrawn(picture) {
  await picture.waitFor();
  await picture.evaluate((image) => image.decode());
  assert(await picture.evaluate((image) => image.naturalWidth > 0));
}

/** A picture is pasted on a phone, sent with a text and described; it is there after a reload, and opens. */
export async function sends_a_picture({ person }) {
  const tab = await (await person({ width: 360, height: 700, hasTouch: true, isMobile: true })).open();
  const fits = async (what) => assert(await tab.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), what);
  await tab.field.focus();
  await bring(tab, "paste", "harbour.png", "picture");
  await uploaded(tab, "harbour.png");
  await fits("a file that is not sent");
  await isAccessible(tab, "a file that is not sent");
  await tab.button("Add files").click();
  await tab.page.getByRole("menuitem", { name: "Take a photo" }).waitFor();
  await isAccessible(tab, "the choice of the camera");
  const [camera] = await Promise.all([tab.page.waitForEvent("filechooser"), tab.page.getByRole("menuitem", { name: "Take a photo" }).click()]);
  assert.equal(await camera.element().getAttribute("capture"), "environment");
  await tab.say("Which harbour is this?");
  await tab.readsToTheEnd();
  assert.match(await tab.answer.textContent(), /A teal harbour\./);
  assert.equal(await tray(tab).count(), 0);
  const thumbnail = tab.questions.getByRole("img", { name: "harbour.png" });
  await isDrawn(thumbnail);
  await tab.page.reload();
  await isDrawn(thumbnail);
  assert.match(await tab.questions.textContent(), /Which harbour is this\?/);
  await fits("a message with a picture");
  await isAccessible(tab, "a message with a picture");
  await thumbnail.click();
  const dialog = tab.page.getByRole("dialog", { name: "harbour.png" });
  await isDrawn(dialog.getByRole("img", { name: "harbour.png" }));
  await dialog.getByRole("link", { name: /^Download .*harbour\.png/ }).waitFor();
  await fits("an open picture");
  await isAccessible(tab, "an open picture");
  await tab.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  return { conversation: await tab.conversation() };
}

/** A picture that a tool has drawn stands below its call, also after a reload, and opens; its message shows no name of a file. */
export async function shows_a_picture_of_a_tool({ person }) {
  const tab = await (await person({ width: 360, height: 700, hasTouch: true, isMobile: true })).open();
  await tab.say('[tokens=5] [call=scripted__draw {"color": "teal"}] Draw a square.');
  const files = tab.answer.getByRole("list", { name: "Files from tools" });
  const picture = files.getByRole("img", { name: "draw.png" });
  await isDrawn(picture);
  await tab.readsToTheEnd();
  await tab.page.reload();
  await isDrawn(picture);
  const [line, shown] = [await tab.answer.locator(".disclosure-line").first().boundingBox(), await picture.boundingBox()];
  assert(shown.y >= line.y + line.height, "below the line of its call");
  assert(await tab.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await isAccessible(tab, "a picture of a tool");
  await picture.click();
  const dialog = tab.page.getByRole("dialog", { name: "draw.png" });
  await isDrawn(dialog.getByRole("img", { name: "draw.png" }));
  await dialog.getByRole("link", { name: /^Download .*draw\.png/ }).waitFor();
  await tab.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
}

/** A refused file says why, a removed one is not sent, and a message may consist of a file alone. */
export async function adds_and_removes_files({ person, base }) {
  const tab = await (await person({ colorScheme: "dark" })).open();
  await tab.field.focus();
  await bring(tab, "drop", "notes.txt", "High water at six.");
  await bring(tab, "drop", "program.txt", "\u007fELF\u0002\u0001\u0001" + "\0".repeat(200));
  await bring(tab, "drop", "secret.txt", "Do not send this.");
  await uploaded(tab, "notes.txt");
  await uploaded(tab, "secret.txt");
  await tab.text("not uploaded · A file of this kind cannot be sent here.").waitFor();
  await tab.field.fill("[tokens=5] What do they say?");
  assert(await tab.button("Try the failed upload again, or remove its file").isDisabled());
  await tab.page.locator("[aria-live=polite]").filter({ hasText: /uploaded/ }).waitFor({ state: "attached" });
  await isAccessible(tab, "a refused file");
  await tab.page.getByRole("button", { name: /^Remove .*program\.txt/ }).click();
  await tab.page.getByRole("button", { name: /^Remove .*secret\.txt/ }).press("Enter");
  // The focus does not disappear with its button.
  await tab.page.waitForFunction(() => document.activeElement?.id === "compose");
  await item(tab, "secret.txt").waitFor({ state: "detached" });
  await tab.send.click();
  await tab.readsToTheEnd();
  assert.match(await filesOf(tab.questions.first()).textContent(), /notes\.txt/);
  assert.equal(await filesOf(tab.questions.first()).getByRole("listitem").count(), 1);
  await isAccessible(tab, "a message with a file");

  // A file alone is a message.
  await tab.field.focus();
  await bring(tab, "paste", "more.txt", "Low water at noon.");
  await uploaded(tab, "more.txt");
  await tab.send.click();
  await tab.questions.nth(1).getByText("more.txt").waitFor();
  await tab.readsToTheEnd();

  // The owner deletes a file, and the message keeps its name.
  const { items } = await (await fetch(`${base}/v1/files`)).json();
  assert.deepEqual(items.map(({ name }) => name).sort(), ["more.txt", "notes.txt"]);
  await fetch(`${base}/v1/files/${items.find(({ name }) => name === "more.txt").id}`, { method: "DELETE" });
  await tab.page.reload();
  await filesOf(tab.questions.nth(1)).getByText("deleted").waitFor();
  await filesOf(tab.questions.first()).getByRole("link", { name: /^Download .*notes\.txt/ }).waitFor();
  await isAccessible(tab, "a message with a deleted file");
  return { conversation: await tab.conversation() };
}

/** A large file continues where its connection broke, and files stay with their conversation. */
export async function goes_on_with_an_upload({ person }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=5] first");
  await tab.readsToTheEnd();
  await tab.conversation();
  const ranges = [];
  await tab.page.route(/\/v1\/files(\/[0-9a-f-]+)?$/, async (route) => {
    const range = route.request().headers()["content-range"];
    if (range?.endsWith("/3500000")) ranges.push(range.replace(/^bytes (\d+)-.*/, "$1"));
    // Two connections break before the server has their bytes.
    const isBroken = range?.startsWith("bytes 2097152-") && ranges.filter((place) => place === "2097152").length < 3;
    await (isBroken ? route.abort("connectionreset") : route.continue());
  });
  await tab.field.focus();
  await bring(tab, "drop", "tides.txt", 3_500_000);
  await item(tab, "tides.txt").waitFor();
  await tab.button("Waiting for the upload").waitFor();
  await tab.button("New chat", tab.list).click();
  await tab.text("What would you like to find out?").waitFor();
  assert.equal(await tray(tab).count(), 0);
  await tab.field.focus();
  await bring(tab, "drop", "other.txt", "For the new chat.");
  await uploaded(tab, "other.txt");
  await tab.list.getByRole("link", { name: /first/ }).click();
  await tab.questions.waitFor();
  await uploaded(tab, "tides.txt");
  assert.equal(await item(tab, "other.txt").count(), 0);
  assert.deepEqual(ranges, ["0", "1048576", "2097152", "2097152", "2097152", "3145728"]);

  // A draft's file survives a reload.
  await tab.page.unrouteAll();
  await tab.page.reload();
  await uploaded(tab, "tides.txt");
  await tab.say("[tokens=5] second");
  await tab.questions.nth(1).getByText("tides.txt").waitFor();
  await tab.readsToTheEnd();
  await tab.button("New chat", tab.list).click();
  await uploaded(tab, "other.txt");
}

/** A file manager copies the name of a file along with it; a text of its own stays a text. */
export async function pastes_a_copied_file({ person }) {
  const tab = await (await person()).open();
  const paste = (texts, name) =>
    tab.field.evaluate(
      (field, [texts, name]) => {
        const clipboardData = new DataTransfer();
        for (const [type, text] of Object.entries(texts)) clipboardData.setData(type, text);
        clipboardData.items.add(new File(["High water at six."], name, { type: "text/plain" }));
        field.focus();
        // A browser inserts the text of a paste that no handler took.
        if (field.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData }))) document.execCommand("insertText", false, texts["text/plain"]);
      },
      [texts, name],
    );
  await paste({ "text/plain": "tides.txt" }, "tides.txt");
  await uploaded(tab, "tides.txt");
  assert.equal(await tab.field.inputValue(), "");
  await paste({ "text/plain": "6\tharbour", "text/html": "<table><tr><td>6</td></tr></table>" }, "image.png");
  assert.equal(await tab.field.inputValue(), "6\tharbour");
  assert.equal(await tray(tab).getByRole("listitem").count(), 1);
}

/** The page says of a dropped folder that it takes none, and takes the file beside it. */
export async function refuses_folders({ person }) {
  const me = await person();
  const tab = await me.open();
  const folder = await mkdtemp(`${tmpdir()}/holiday-`);
  const file = `${folder}/tides.txt`;
  await writeFile(file, "High water at six.");
  const browser = await me.context.newCDPSession(tab.page);
  const { x, y } = await tab.field.boundingBox();
  const data = { items: [], files: [folder, file], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await browser.send("Input.dispatchDragEvent", { type, x: x + 60, y: y + 15, data });
  await tab.text("Folders cannot be added. Add the files in them.").waitFor();
  await uploaded(tab, "tides.txt");
  assert.equal(await tray(tab).getByRole("listitem").count(), 1);
  await tab.say("[tokens=5] here");
  await tab.readsToTheEnd();
}

/** An edit keeps the files, and may take one away and add another. */
export async function edits_a_message_with_files({ person }) {
  const tab = await (await person()).open();
  await tab.field.focus();
  const [picker] = await Promise.all([tab.page.waitForEvent("filechooser"), tab.button("Add files").click()]);
  await picker.setFiles({ name: "one.txt", mimeType: "text/plain", buffer: Buffer.from("one") });
  await bring(tab, "drop", "two.txt", "two");
  await uploaded(tab, "one.txt");
  await uploaded(tab, "two.txt");
  await tab.say("[tokens=5] Compare them.");
  await tab.readsToTheEnd();
  await tab.act("Edit", tab.questions.first());
  const form = tab.questions.first().locator("form");
  await form.getByRole("button", { name: /^Remove .*two\.txt/ }).click();
  await form.getByRole("textbox", { name: "Edit your message" }).focus();
  await bring(tab, "paste", "three.txt", "three");
  await form.getByRole("button", { name: /^Remove .*three\.txt/ }).waitFor();
  await isAccessible(tab, "an edit with files");
  await form.getByRole("textbox", { name: "Edit your message" }).fill("[tokens=6] Compare these.");
  await tab.button("Send", form).click();
  await tab.questions.first().getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await tab.readsToTheEnd();
  assert.match(await filesOf(tab.questions.first()).textContent(), /one\.txt.*three\.txt/);
  await tab.button("Answer again", tab.answer).click();
  await tab.answer.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  assert.match(await filesOf(tab.questions.first()).textContent(), /one\.txt.*three\.txt/);
  await tab.button("Previous version", tab.questions.first()).click();
  await filesOf(tab.questions.first()).getByText("two.txt").waitFor();
  return { conversation: await tab.conversation() };
}

/** A message with a file that cannot be sent keeps its file, also over a reload, and arrives once. */
export async function keeps_files_that_cannot_be_sent({ person }) {
  const tab = await (await person()).open();
  await tab.field.focus();
  await bring(tab, "paste", "buoy.png", "picture");
  await uploaded(tab, "buoy.png");
  const isAway = (route) => route.abort("connectionrefused");
  await tab.page.route(/\/v1\/runs$/, isAway);
  await tab.say("[tokens=5] Which buoy is this?");
  await tab.text("Not sent yet. The page sends it as soon as the server can be reached.", tab.log).waitFor();
  await isDrawn(tab.questions.getByRole("img", { name: "buoy.png" }));
  assert.equal(await tray(tab).count(), 0);
  await tab.page.reload();
  await uploaded(tab, "buoy.png");
  assert.equal(await tab.field.inputValue(), "[tokens=5] Which buoy is this?");
  await tab.send.click();
  await tab.text("Not sent yet. The page sends it as soon as the server can be reached.", tab.log).waitFor();
  await tab.page.unroute(/\/v1\/runs$/, isAway);
  await tab.readsToTheEnd();
  assert.equal(await tab.questions.count(), 1);
  assert.equal(await tray(tab).count(), 0);
  await tab.page.reload();
  await isDrawn(tab.questions.getByRole("img", { name: "buoy.png" }));
  assert.equal(await tray(tab).count(), 0);
  return { conversation: await tab.conversation() };
}

/** A message with a file steers an answer that is being made, and can be taken back with its file. */
export async function steers_with_a_file({ person }) {
  const tab = await (await person()).open();
  await tab.say("[tokens=4000] [delay=10] first");
  await tab.reads(20);
  await tab.field.focus();
  await bring(tab, "drop", "chart.txt", "Rocks ahead.");
  await uploaded(tab, "chart.txt");
  await tab.field.fill("See the chart.");
  await tab.field.press("Control+Enter");
  const waiting = tab.page.getByRole("article", { name: "Waiting message" });
  await waiting.getByText("chart.txt").waitFor();
  await tab.button("Take back", waiting).click();
  await uploaded(tab, "chart.txt");
  assert.equal(await tab.field.inputValue(), "See the chart.");
  await tab.stop.click();
  await tab.readsToTheEnd();
}

/** An upload that the writer stops leaves the message and the server, and the message goes without it. */
export async function stops_an_upload({ person, base }) {
  const tab = await (await person()).open();
  const isPiece = (request) => request.headers()["content-range"]?.startsWith("bytes 1048576-") ?? false;
  // The second piece gets no answer until the page gives it up.
  await tab.page.route(/\/v1\/files\/[0-9a-f-]+$/, (route) => (isPiece(route.request()) ? undefined : route.continue()));
  await tab.field.focus();
  const held = tab.page.waitForRequest(isPiece);
  await bring(tab, "drop", "tides.txt", 3_500_000);
  await held;
  await item(tab, "tides.txt").getByRole("progressbar", { name: /^Upload of .*tides\.txt/ }).waitFor();
  await tab.field.fill("[tokens=5] Without the tides.");
  assert(await tab.button("Waiting for the upload").isDisabled());
  await isAccessible(tab, "an upload that lasts");
  const deleted = tab.page.waitForResponse((response) => response.request().method() === "DELETE" && response.url().includes("/v1/files/"));
  await tab.page.getByRole("button", { name: /^Stop the upload of .*tides\.txt/ }).click();
  await item(tab, "tides.txt").waitFor({ state: "detached" });
  assert.equal((await deleted).status(), 204);
  assert.deepEqual((await (await fetch(`${base}/v1/files`)).json()).items, []);
  await tab.send.click();
  await tab.readsToTheEnd();
  assert.equal(await filesOf(tab.questions.first()).count(), 0);
  return { conversation: await tab.conversation() };
}

/** An upload that has failed is tried again where it stopped. A PDF of a message opens in the browser, where it can do nothing. */
export async function tries_an_upload_again({ person, reach, told }) {
  const tab = await (await person()).open();
  const places = [];
  tab.page.on("request", (request) => {
    const range = request.headers()["content-range"];
    if (range) places.push(Number(/\d+/.exec(range)[0]));
  });
  let release;
  const isHeld = new Promise((resolve) => (release = resolve));
  await tab.page.route(/\/v1\/files\/[0-9a-f-]+$/, async (route) => {
    if (route.request().method() === "PATCH") await isHeld;
    await route.continue();
  });
  await tab.field.focus();
  const begun = tab.page.waitForRequest((request) => request.method() === "PATCH");
  await bring(tab, "drop", "chart.pdf", `%PDF-1.7\n${"x".repeat(1_500_000)}`);
  await begun;
  reach("uploading");
  await told();
  release();
  await item(tab, "chart.pdf").getByText(/^not uploaded · The server cannot be reached/).waitFor();
  await tab.field.fill("[tokens=5] Read the chart.");
  assert(await tab.button("Try the failed upload again, or remove its file").isDisabled());
  reach("failed");
  await told();
  places.length = 0;
  await tab.page.getByRole("button", { name: /^Try again to upload .*chart\.pdf/ }).click();
  await uploaded(tab, "chart.pdf");
  assert.deepEqual(places, [1_048_576], "the server has the first piece");
  await tab.send.click();
  await tab.readsToTheEnd();
  const link = filesOf(tab.questions.first()).getByRole("link", { name: /^Download .*chart\.pdf/ });
  const address = await link.getAttribute("href");
  const headers = await tab.page.evaluate(async (address) => Object.fromEntries((await fetch(address)).headers), address);
  assert.equal(headers["content-type"], "application/pdf");
  assert.match(headers["content-disposition"], /^inline;/);
  assert.equal(headers["content-security-policy"], "default-src 'none'; style-src 'unsafe-inline'; sandbox");
  assert.equal(headers["x-content-type-options"], "nosniff");
  return { conversation: await tab.conversation() };
}
