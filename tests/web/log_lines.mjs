// Prints the log lines of events that are given as JSON: {"seat", "events"} by line of the input.

import { readFileSync } from "node:fs";

import "./local_fetch.mjs";
import { LogLines } from "../../dealer/web/table/log_lines.js";

const seats = new Map([[1, "Ada"], [2, "Bob"]]);
for (const line of readFileSync(0, "utf8").trim().split("\n")) {
  const { seat, events } = JSON.parse(line);
  const log = new LogLines(() => seat);
  for (const event of events) log.add(event, { seats, stackOf: () => undefined });
  console.log(JSON.stringify(log.all.map(({ text }) => text((code) => code))));
}
