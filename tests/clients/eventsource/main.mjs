// Follows a run with the package `eventsource`: main.mjs BASE {"run_id": …}
import { EventSource } from "eventsource";

import { follow } from "../event-source.mjs";
import { fold } from "../fold.mjs";

const [base, parameters] = process.argv.slice(2);
const { run_id } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

// The package lets the process end while it waits to come back.
const alive = setInterval(() => {}, 60_000);
let answer;
const apply = (event) => {
  answer = fold(event);
  report({ got: event });
};
const over = () => {
  report({ end: answer });
  clearInterval(alive);
};
follow(EventSource, `${base}/v1/runs/${run_id}/events`, apply, over);
