/** A client of Holdfast: runs whose events survive a lost connection. */
export { Answer } from "./answer.js";
export { HoldfastClient, type ClientOptions, type NewMessage, type NewRun } from "./client.js";
export { BrokenLog, ConnectionLost, Problem } from "./problem.js";
export type * from "./wire.js";
