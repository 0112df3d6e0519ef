// The browser of all scenarios. It prints the address to which their programs connect, and ends with its standard input.
import { chromium } from "playwright-core";

import { options } from "./launch.mjs";

const server = await chromium.launchServer(options);
console.log(server.wsEndpoint());
process.stdin.on("end", () => server.close()).resume();
