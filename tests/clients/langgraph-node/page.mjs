// `useStream` in a DOM, as in a page that its user may reload.
import { JSDOM } from "jsdom";

const { window } = new JSDOM("", { pretendToBeVisual: true, url: "http://localhost/" });
for (const name of ["window", "document", "navigator"]) Object.defineProperty(globalThis, name, { value: window[name] });

const { createElement, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useStream } = await import("@langchain/langgraph-sdk/react");

/** Shows a thread, and does the steps of the page: a text to say, an answer, or a reload in mid-answer. */
export async function show({ apiUrl, assistant, page, report }) {
  let stream, changed, threadId, root;
  const Page = () => {
    stream = useStream({
      apiUrl, apiKey: null, assistantId: assistant, threadId, reconnectOnMount: true, fetchStateHistory: true,
      onThreadId: (id) => (threadId = id),
    });
    useEffect(() => changed?.());
    return stream.messages.length;
  };
  const open = () => {
    root = createRoot(document.body.appendChild(document.createElement("main")));
    root.render(createElement(Page));
  };
  const until = (holds) =>
    new Promise((done) => {
      changed = () => {
        if (stream && holds(stream)) done();
      };
      changed();
    });
  const text = () => stream.messages.at(-1)?.content ?? "";

  open();
  await until(() => true);
  for (const step of page) {
    if (step.say) {
      stream.submit({ messages: [{ type: "human", content: step.say }] }, { streamResumable: true });
      await until(({ isLoading }) => isLoading);
    } else if (step.reload) {
      await until(({ messages }) => messages.at(-1)?.type === "ai" && text().length > 30);
      const before = text();
      root.unmount();
      open();
      await until(({ isLoading }) => isLoading);
      await until(() => text().length > before.length);
      report({ got: { before, after: text() } });
      continue;
    } else if (step.resume) {
      stream.submit(undefined, { command: { resume: step.resume }, streamResumable: true });
      await until(({ isLoading }) => isLoading);
    }
    if (step.until !== "loading") await until(({ isLoading }) => !isLoading);
    const { messages, interrupt, error } = stream;
    report({ got: { messages, interrupt: interrupt ?? null, error: error ? String(error) : null } });
  }
  await until(({ isLoading }) => !isLoading);
  return { threadId, messages: stream.messages, history: stream.history.length };
}
