export const messages: typeof import("../en/messages").messages = {};
