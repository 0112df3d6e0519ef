// Starts a run and follows it with the package `eventsource`: main.mjs BASE {"input": …}
import { EventSource } from "eventsource";

import { follow } from "../event-source.mjs";
import { fold, textOf } from "../fold.mjs";

const [base, parameters] = process.argv.slice(2);
const { input } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

// The timer keeps the process alive while the package waits to reconnect.
const alive = setInterval(() => {}, 60_000);
let answer;
const show = (event, text) => {
  answer = text;
  report({ got: event });
};
const over = () => {
  report({ end: answer });
  clearInterval(alive);
};

const headers = { "content-type": "application/json" };
const posted = await fetch(`${base}/v1/runs`, { method: "POST", headers, body: JSON.stringify({ input }) });
const { run } = await posted.json();
let pieces = [];
const apply = (event) => show(event, textOf((pieces = fold(pieces, event))));
follow(EventSource, `${base}/v1/runs/${run.id}/events`, apply, over);
