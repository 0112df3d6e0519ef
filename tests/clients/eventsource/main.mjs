// Follows a run with the package `eventsource`: main.mjs BASE {"run_id": …}
import { EventSource } from "eventsource";

import { follow } from "../event-source.mjs";

const [base, parameters] = process.argv.slice(2);
const { run_id } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));
let answer;

follow(
  EventSource,
  `${base}/v1/runs/${run_id}/events`,
  (event, text) => {
    answer = text;
    report({ got: event });
  },
  () => report({ end: answer }),
);
