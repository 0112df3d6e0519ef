// Asks of scenarios of several subjects: the server, as another program would, and where the focus is.
import assert from "node:assert/strict";

export async function ask(base, method, path, body) {
  const response = await fetch(`${base}${path}`, { method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body) });
  assert(response.ok, `${method} ${path}: ${response.status}`);
  return response.json();
}

export async function hasFocus(locator) {
  const element = await locator.elementHandle();
  await locator.page().waitForFunction((element) => document.activeElement === element, element);
}
