// A live chat exists as long as it is on the screen: it is the AI SDK's chat on Holdfast's transport. It joins
// speaking, reading, answering and the stream's events; it knows nothing of React's rendering.
import { Chat as SdkChat } from "@ai-sdk/react";
import type { UIMessageChunk } from "ai";

import { newId } from "../client/id";
import { CAUGHT_UP } from "../client/past";
import { authorization } from "../client/token";
import { HoldfastTransport } from "../client/transport";
import { Answering } from "./answering";
import { onReturn } from "./away";
import { LiveState } from "./liveState";
import type { ChatMessage } from "./message";
import { Reading } from "./reading";
import { Speaking } from "./speaking";
import { reconnecting, retryingOf } from "./state";
import { chatTabs } from "./tabs";
import { clientTools } from "./tools";

/** The open chat, and chats that the reader left while a message was in flight to the server. */
const alive = new Set<LiveChat>();

const isUnderway = ({ state }: LiveChat) => state.utterance?.isUnderway === true;

/** Returns the new chat whose first message the server does not have yet. */
export function unsentNewChat(): string | undefined {
  return [...alive].find((chat) => isUnderway(chat) && chat.state.isNew && !chat.state.conversationId)?.sdk.id;
}

/** Drops the messages in flight: another reader must not send them. */
export function giveUpUnsent(): void {
  alive.forEach((chat) => chat.hangUp());
  alive.clear();
}

export class LiveChat {
  #isOpen = false;
  readonly sdk: SdkChat<ChatMessage>;
  readonly state: LiveState;
  readonly reading: Reading;
  readonly speaking: Speaking;
  readonly answering: Answering;

  /** Returns the chat of this id: the existing one, if a message in it is still in flight. */
  static of(id: string, isNew: boolean): LiveChat {
    const known = [...alive].find((chat) => isUnderway(chat) && (chat.sdk.id === id || chat.state.conversationId === id));
    return known ?? new LiveChat(id, isNew);
  }

  constructor(id: string, isNew: boolean) {
    this.sdk = new SdkChat<ChatMessage>({
      id,
      generateId: newId,
      transport: this.#transport(),
      onData: (part) => {
        if ((part.type as string) === CAUGHT_UP) this.reading.catchUp();
        if (part.type === "data-state") this.state.set({ doing: part.data.state });
      },
      onFinish: ({ isAbort, isError }) => {
        // An aborted stream continues in another one.
        if (isAbort) return;
        this.state.set({ retrying: undefined, isReconnecting: false, nextTryAt: undefined });
        if (!isError && this.state.now.failed === "reading") this.state.set({ problem: undefined, failed: undefined });
        if (!isError && this.state.progress === "idle") this.speaking.dropStop();
      },
      onError: (error) => this.speaking.fail(error),
    });
    this.state = new LiveState(this.sdk, isNew);
    this.reading = new Reading(this.state);
    this.speaking = new Speaking(this.state, this.reading);
    this.answering = new Answering(this.state, this.reading, this.speaking);
  }

  /**
   * Opens the chat and returns a function that closes it. The run continues without the page, and the close waits for a
   * message in flight.
   */
  open(): () => void {
    const stops = [chatTabs.onNotice(({ ids }) => this.#hear(ids)), onReturn(() => void this.reading.look())];
    alive.add(this);
    this.#isOpen = true;
    this.reading.open();
    return () => {
      this.#isOpen = false;
      this.reading.close();
      this.speaking.dropStop();
      stops.forEach((stop) => stop());
      if (!isUnderway(this)) return this.#end();
      void this.state.settled().then(() => this.#isOpen || this.#end());
    };
  }

  #end(): void {
    alive.delete(this);
    this.hangUp();
  }

  hangUp(): void {
    this.state.begin();
    void this.sdk.stop();
  }

  #transport(): HoldfastTransport<ChatMessage> {
    return new HoldfastTransport<ChatMessage>({
      headers: authorization,
      // Only agents receive tools: a deployment's plain model may not know tools.
      body: () => (this.state.agentId ? { agentId: this.state.agentId, clientTools } : {}),
      onAccepted: () => this.speaking.accept(),
      isEndless: true,
      onConnection: (connection, wait) => {
        this.reading.hasStream ||= connection === "connected";
        this.state.set(connection === "reconnecting" ? reconnecting(wait) : { isReconnecting: false, nextTryAt: undefined });
        if (connection === "reconnecting" && this.state.utterance?.wantsStop) void this.speaking.stop();
      },
      onTakenBack: (attempt) => {
        this.reading.hold();
        this.state.set({ retrying: retryingOf(attempt) });
        // Without a reason from the server, all messages may have changed.
        void (attempt ? this.reading.resume(this.sdk.lastMessage?.metadata?.runId) : this.reading.read());
      },
      onChunk: (chunk, isPast) => {
        if (isPast || !isContent(chunk)) return;
        if (this.state.now.retrying) this.state.set({ retrying: undefined });
        if (this.state.now.held) this.reading.catchUp();
      },
    });
  }

  #hear(ids: string[]): void {
    const { conversationId } = this.state;
    if (!ids.includes(this.sdk.id) && !(conversationId && ids.includes(conversationId))) return;
    this.speaking.dropStop();
    void this.reading.hear();
  }
}

/** Whether the chunk is content of the answer itself. */
function isContent({ type }: UIMessageChunk): boolean {
  return type.endsWith("-delta") || type.startsWith("tool-");
}
