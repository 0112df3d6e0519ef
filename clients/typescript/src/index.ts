/** A client of Holdfast: runs whose events survive a lost connection. */
export type { Server } from "./address.js";
export { Answer } from "./answer.js";
export { HoldfastClient, type ClientOptions, type NewMessage, type NewRun } from "./client.js";
export { BrokenLog, ConnectionLost, Problem } from "./problem.js";
export { follow, type Followed, type Following, type Progress } from "./processor.js";
export type { Begun, Uploading } from "./upload.js";
export type * from "./wire.js";
