import { Problem, UNREACHABLE } from "holdfast-client/problem";
import { expect, it } from "vitest";

import { files } from "../i18n/en/files";
import { announcementOf } from "./announcement";
import type { Item } from "./tray";

const words = files.files;
const item = (name: string, state: Item["state"], problem?: Problem): Item => ({ key: name, name, mediaType: "text/plain", bytes: 10, received: 0, state, problem });
const said = (before: Item[], after: Item[]) => announcementOf(words, before, after)?.replace(/[\u2068\u2069]/g, "");

it("a screen reader hears the beginning and the end of an upload, and no progress", () => {
  const [begun, ready] = [item("a.txt", "uploading"), item("a.txt", "ready")];
  expect(said([], [begun])).toBe("a.txt is being uploaded.");
  expect(said([begun], [{ ...begun, received: 5 }])).toBeUndefined();
  expect(said([begun], [ready])).toBe("a.txt is uploaded.");
  expect(said([ready, item("b.txt", "ready")], [ready])).toBe("b.txt is removed.");
});

it("a refused kind of file is told in a person's words", () => {
  const problem = new Problem(400, "file_type_refused", "The contents of the file are video/mp4, which HOLDFAST_FILE_TYPES does not allow.");
  const refused = (name: string, mediaType: string) => said([], [{ ...item(name, "failed", problem), mediaType }]);
  expect(refused("movie.mp4", "video/mp4")).toBe("movie.mp4 was not uploaded. Videos cannot be sent here.");
  expect(refused("program.txt", "text/plain")).toBe("program.txt was not uploaded. A file of this kind cannot be sent here.");
  expect(refused("unknown", "")).toBe("unknown was not uploaded. A file of this kind cannot be sent here.");
});

it("a failure is told with the server's reason, or with the page's if no server has answered", () => {
  const begun = item("a.txt", "uploading");
  expect(said([begun], [item("a.txt", "failed", new Problem(413, "file_too_large", "It is too large."))])).toBe("a.txt was not uploaded. It is too large.");
  expect(said([begun], [item("a.txt", "failed", new Problem(0, UNREACHABLE, "fetch failed"))])).toBe("a.txt was not uploaded. The server cannot be reached.");
});
