/** Sends a text on the page of a chat, reloads the page in mid-answer, and returns the lines of the page at the end. */
export async function talk(page, url, text) {
  page.setDefaultTimeout(60_000);
  await page.goto(url);
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.locator("main > p").nth(1);
  await answer.getByText("beacon13").waitFor();
  await page.reload();
  await answer.getByText("beacon13").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  return page.locator("main > p").allTextContents();
}
