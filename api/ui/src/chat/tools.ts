// This page executes these tools itself, for agents.

/** This tool asks the reader; the messages show it as a question. */
export const ASK_USER = "ask_user";

export const clientTools = [
  {
    name: ASK_USER,
    description:
      "Asks the user a question and waits for the answer. Use it when you cannot go on without something that only the user " +
      "knows. Offer options if there are few likely answers.",
    inputSchema: {
      type: "object",
      properties: {
        question: { type: "string" },
        options: { type: "array", items: { type: "string" }, description: "Likely answers; the user may also answer freely." },
        multiple: { type: "boolean", description: "Whether several options may be chosen." },
      },
      required: ["question"],
    },
  },
];
