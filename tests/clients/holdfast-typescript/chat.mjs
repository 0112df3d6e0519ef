// A chat of the AI SDK with the transport of `holdfast-client/ai-sdk`.
import { AbstractChat } from "ai";

import { AnswerTakenBack, HoldfastTransport } from "holdfast-client/ai-sdk";

/** Asks a question and returns the messages of the chat. It resumes the answer when a lost worker's text is taken back. */
export async function chat(base, text, got) {
  const transport = new HoldfastTransport({ baseUrl: base });
  const chat = new Chat({ id: "c", transport, state: new State(got) });
  await chat.sendMessage({ text });
  while (chat.status === "error") {
    if (!(chat.error instanceof AnswerTakenBack)) throw chat.error;
    got({ resumed: true });
    chat.clearError();
    await chat.resumeStream();
  }
  return chat.messages;
}

// The SDK prints the errors that a chat also has.
console.error = () => {};

class Chat extends AbstractChat {}

/** The state of a chat, which a framework's hook would keep. */
class State {
  status = "ready";
  error = undefined;
  messages = [];
  experimental_queuedMessages = [];
  #shown = 0;

  constructor(got) {
    this.got = got;
  }

  pushMessage(message) {
    this.messages = [...this.messages, message];
    this.#show(message);
  }

  popMessage() {
    this.messages = this.messages.slice(0, -1);
  }

  replaceMessage(index, message) {
    this.messages = this.messages.with(index, this.snapshot(message));
    this.#show(message);
  }

  snapshot(value) {
    return structuredClone(value);
  }

  #show(message) {
    const shown = message.parts.reduce((length, part) => length + (part.type === "text" ? part.text.length : 0), 0);
    if (message.role === "assistant" && shown !== this.#shown) this.got({ shown: (this.#shown = shown) });
  }
}
