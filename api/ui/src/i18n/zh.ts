import type { Words } from ".";
import { messages } from "./zh/messages";
import { shell } from "./zh/shell";

export const zh: Words = { ...messages, ...shell };
