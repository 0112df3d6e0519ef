// What the AI SDK leaves to a front end: waiting while nobody answers, and knowing when an answer was only cut off.

/** `fetch` that waits while nobody answers. A message that is sent twice is one run. */
export async function patiently(url, init) {
  for (let wait = 100; ; wait = Math.min(2 * wait, 5000)) {
    try {
      const response = await fetch(url, init);
      if (![502, 503, 504].includes(response.status)) return response;
      await response.body?.cancel();
    } catch (error) {
      if (init?.signal?.aborted) throw error;
    }
    await new Promise((resume) => setTimeout(resume, wait));
  }
}

/** Whether the answer goes on, and only the connection has ended, or the count of what has come. */
export const wasCutOff = (error) => error instanceof TypeError || /chunks_superseded/.test(error?.message);
