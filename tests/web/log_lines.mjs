// Prints the log lines of events that are given as JSON, {"seat", "events", "seats"} by line of the
// input: `seats` are those who sit now, by default Ada and Bob. The versions count from 1.

import { readFileSync } from "node:fs";

import "./local_fetch.mjs";
import { LogLines } from "../../dealer/web/table/log_lines.js";

const SEATS = [{ seat: 1, name: "Ada", since: 0 }, { seat: 2, name: "Bob", since: 0 }];
for (const line of readFileSync(0, "utf8").trim().split("\n")) {
  const { seat, events, seats = SEATS } = JSON.parse(line);
  const log = new LogLines(() => seat);
  events.forEach((event, index) =>
    log.add({ version: index + 1, ...event }, { seats, stackOf: () => undefined }));
  console.log(JSON.stringify(log.all.map(({ text }) => text((code) => code))));
}
