// Tabs of this origin notify each other of changes.
import { newId } from "holdfast-client/id";

/** The browser delivers a channel's message to every other channel of the origin, also to those of the sending page. */
const tab = newId();

export class Tabs<Notice extends object> {
  constructor(readonly channel: string) {}

  tell(notice: Notice): void {
    if (typeof BroadcastChannel === "undefined") return;
    const channel = new BroadcastChannel(this.channel);
    channel.postMessage({ ...notice, tab });
    channel.close();
  }

  /** Calls the listener for each message of another tab; returns a function that stops it. */
  onNotice(listener: (notice: Notice) => void): () => void {
    if (typeof BroadcastChannel === "undefined") return () => {};
    const channel = new BroadcastChannel(this.channel);
    channel.onmessage = ({ data }: MessageEvent<Notice & { tab: string }>) => {
      if (data.tab !== tab) listener(data);
    };
    return () => channel.close();
  }
}

/** A tab sends this after a message, an answer or a stop in the chat that has these ids, and after its deletion. */
export const chatTabs = new Tabs<{ ids: string[]; isDeleted?: boolean }>("holdfast-chat");

/** A tab sends this after its reader has signed in or out: all tabs share one cookie. */
export const readerTabs = new Tabs<object>("holdfast-reader");
