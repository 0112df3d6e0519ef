// The parts of reconnection that the AI SDK leaves to a front end: waiting for a server, and recognising a broken connection.

/** A `fetch` that retries while the server is away. A message that is sent twice is one run. */
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

/** Returns whether the answer continues, and only the connection or the count of chunks has become invalid. */
export const wasCutOff = (error) => error instanceof TypeError || /chunks_superseded/.test(error?.message);
