// `useChat` in a DOM, as in a page.
import { JSDOM } from "jsdom";

import { isAnswered } from "./chat.mjs";

const { window } = new JSDOM("", { pretendToBeVisual: true });
for (const name of ["window", "document", "navigator"]) Object.defineProperty(globalThis, name, { value: window[name] });

const { createElement, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useResumedChat } = await import("./use-chat.mjs");
const ai = await import("ai");

export async function chatOf({ api, id, body, changed }) {
  let chat;
  const sendAutomaticallyWhen = (chat) => isAnswered(ai, chat);
  const Page = ({ shown }) => {
    chat = useResumedChat({ id, api, body, sendAutomaticallyWhen });
    useEffect(() => (shown(), changed()));
    return chat.messages.length;
  };
  const root = createRoot(document.body.appendChild(document.createElement("main")));
  await new Promise((shown) => root.render(createElement(Page, { shown })));
  // A page reads the values of its last rendering.
  return new Proxy({}, { get: (_, name) => chat[name] });
}
