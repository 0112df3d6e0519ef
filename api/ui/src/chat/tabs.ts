// The other tabs of this origin: what one does in a chat, the others see.
import { newId } from "../client/id";

const CHANNEL = "holdfast-chat";

/** A channel's message comes to every other channel of the origin, also to those of the page that has sent it. */
const tab = newId();

type Told = { tab: string; ids: string[] };

/** Tells that something was said, answered or stopped in the chat that has these ids. */
export function tellTabs(ids: string[]): void {
  if (typeof BroadcastChannel === "undefined") return;
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage({ tab, ids } satisfies Told);
  channel.close();
}

/** Calls when another tab has told something of any chat; gives back how to end it. */
export function onTold(listener: (ids: string[]) => void): () => void {
  if (typeof BroadcastChannel === "undefined") return () => {};
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<Told>) => {
    if (data.tab !== tab) listener(data.ids);
  };
  return () => channel.close();
}
