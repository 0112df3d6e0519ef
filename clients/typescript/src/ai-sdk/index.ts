/** A transport for `useChat` of the AI SDK 7, whose answers survive lost connections. */
export { AnswerTakenBack } from "./line.js";
export { CAUGHT_UP } from "./past.js";
export { HoldfastTransport, type Question, type TransportOptions } from "./transport.js";
