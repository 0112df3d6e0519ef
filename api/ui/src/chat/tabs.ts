// The other tabs of this origin: what one does, the others hear of.
import { newId } from "../client/id";

/** A channel's message comes to every other channel of the origin, also to those of the page that has sent it. */
const tab = newId();

export class Tabs<Told extends object> {
  constructor(readonly channel: string) {}

  tell(told: Told): void {
    if (typeof BroadcastChannel === "undefined") return;
    const channel = new BroadcastChannel(this.channel);
    channel.postMessage({ ...told, tab });
    channel.close();
  }

  /** Calls when another tab has told something; gives back how to end it. */
  onTold(listener: (told: Told) => void): () => void {
    if (typeof BroadcastChannel === "undefined") return () => {};
    const channel = new BroadcastChannel(this.channel);
    channel.onmessage = ({ data }: MessageEvent<Told & { tab: string }>) => {
      if (data.tab !== tab) listener(data);
    };
    return () => channel.close();
  }
}

/** Something was said, answered or stopped in the chat that has these ids. */
export const chatTabs = new Tabs<{ ids: string[] }>("holdfast-chat");

/** Somebody has signed in or out: all tabs have the same cookie. */
export const readerTabs = new Tabs<object>("holdfast-reader");
