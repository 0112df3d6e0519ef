import { messages } from "./en/messages";
import { shell } from "./en/shell";

export const en = { ...messages, ...shell };
