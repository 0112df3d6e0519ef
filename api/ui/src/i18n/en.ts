import { files } from "./en/files";
import { messages } from "./en/messages";
import { shell } from "./en/shell";

export const en = { ...files, ...messages, ...shell };
