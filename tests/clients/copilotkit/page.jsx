// The page of a person: CopilotKit's chat, with a question to approve, a tool of the front end and a context.
import { CopilotChat, CopilotKitProvider, useAgentContext, useFrontendTool, useInterrupt } from "@copilotkit/react-core/v2";
import { createRoot } from "react-dom/client";
import { z } from "zod";

function Chat({ threadId }) {
  useAgentContext({ description: "The ship of the person", value: { name: "Ketch of Ann" } });
  useFrontendTool({
    name: "paint",
    description: "Paints the page.",
    parameters: z.object({ question: z.string() }),
    handler: async ({ question }) => {
      document.body.dataset.painted = question;
      return `painted ${question}`;
    },
  });
  useInterrupt({
    render: ({ interrupt, resolve, cancel }) => (
      <fieldset>
        <legend>{interrupt.message}</legend>
        <button onClick={() => resolve({ approved: true })}>Approve</button>
        <button onClick={() => cancel()}>Deny</button>
      </fieldset>
    ),
  });
  return <CopilotChat threadId={threadId} />;
}

const threadId = new URLSearchParams(location.search).get("thread");
createRoot(document.getElementById("root")).render(
  <CopilotKitProvider runtimeUrl="/api/copilotkit">
    <Chat threadId={threadId} />
  </CopilotKitProvider>,
);
