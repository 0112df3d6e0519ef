// A stop cancels the live run of a chat; the page repeats it until the server has received it. It means the current
// run: a new message drops it, so that a late stop cannot cancel the new run.
import { patiently } from "../client/patience";
import { stopChat } from "../client/server";

export class Stopping {
  #wish = new AbortController();

  /**
   * Resolves with whether the server has cancelled; `false` if a caller dropped the stop before. Rejects with a
   * `Problem`.
   */
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
