import type { Words } from ".";
import { files } from "./zh/files";
import { messages } from "./zh/messages";
import { shell } from "./zh/shell";

export const zh: Words = { ...files, ...messages, ...shell };
