// The page's uploads, with the reader's token.
import { Problem } from "holdfast-client/problem";
import { type Begun, uploadFile as uploadTo } from "holdfast-client/upload";
import type { StoredFile } from "holdfast-client/wire";

import { authorization } from "./token";

export interface Uploading {
  signal: AbortSignal;
  /** The upload notes its progress here, and another try continues it. */
  begun: Begun;
  onProgress?(received: number): void;
}

let newest: Promise<unknown> = Promise.resolve();

/**
 * Order matters: files begin one after another. The first answer may bring an anonymous user's cookie, and requests
 * beside it would belong to other users.
 */
function inTurn<T>(request: () => Promise<T>): Promise<T> {
  const begun = newest.then(request);
  newest = begun.catch(() => {});
  return begun;
}

/**
 * Resolves with the stored file. Rejects with a `Problem` after five tries without a new byte, because the reader can
 * try again, or with the signal's reason.
 */
export async function uploadFile(file: Blob, name: string, uploading: Uploading): Promise<StoredFile> {
  await expectReadable(file);
  try {
    return await uploadTo({ headers: authorization }, file, name, { ...uploading, inTurn, patience: 0 });
  } catch (error) {
    await expectReadable(file);
    throw error;
  }
}

/** To `fetch`, a body that it cannot read is a failed connection. */
async function expectReadable(file: Blob): Promise<void> {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch (error) {
    throw new Problem(0, "file_unreadable", String(error));
  }
}
