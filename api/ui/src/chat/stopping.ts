// The wish that what is at work in a chat is cancelled, kept until the server has heard of it. It means what is at work now:
// whoever says something new drops it, so that it cannot come late and cancel that.
import { patiently } from "../client/patience";
import { stopChat } from "../client/server";

export class Stopping {
  #wish = new AbortController();

  /** Resolves with whether it was done; `false`, if it was dropped before. Rejects with a `Problem`. */
  async cancel(chatId: string, onTrouble?: (wait: number) => void): Promise<boolean> {
    this.drop();
    const { signal } = (this.#wish = new AbortController());
    try {
      await patiently(() => stopChat(chatId), { signal, onTrouble });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return !signal.aborted;
  }

  drop(): void {
    this.#wish.abort();
  }
}
