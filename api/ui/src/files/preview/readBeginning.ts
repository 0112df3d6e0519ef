// Reads the beginning of a file, and no more, however large the file is.
import { addressOf } from "../../client/files";
import { authorization } from "../../client/token";
import { decoded } from "./decoded";

/** The page reads so many bytes of a file for its preview. */
export const MOST_BYTES = 256 * 1024;

export interface Beginning {
  text: string;
  /** Whether the file has more. */
  isCut: boolean;
}

/** Rejects if the server does not have the file, or does not answer. */
export async function readBeginning(file: { id: string; bytes: number }, signal: AbortSignal): Promise<Beginning> {
  const response = await fetch(addressOf(file), { headers: { ...authorization(), range: `bytes=0-${MOST_BYTES - 1}` }, signal });
  if (!response.ok) throw new Error(`The server answers ${response.status}.`);
  const bytes = await bytesOf(response);
  const isCut = file.bytes > bytes.length;
  return { text: decoded(bytes, response.headers.get("content-type"), isCut), isCut };
}

/** A proxy may send all of the file in place of the range. */
async function bytesOf(response: Response): Promise<Uint8Array> {
  const reader = response.body!.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  while (length < MOST_BYTES) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value.subarray(0, MOST_BYTES - length));
    length += parts.at(-1)!.length;
  }
  void reader.cancel().catch(() => {});
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}
