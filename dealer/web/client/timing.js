/** Timeouts, back-off and random ids of the connection. All times are milliseconds. */

import { hex } from "../verify.js";

/** Whether this runs on a page of a browser, and not on node. */
export const IN_BROWSER = typeof document !== "undefined";

/** @type {import("../client.js").RetryPolicy} */
export const DEFAULT_RETRY_POLICY = {
  open: 10_000,
  // The page says within 8 seconds that the own connection is lost.
  silence: IN_BROWSER ? 4000 : 20_000,
  answer: IN_BROWSER ? 3500 : 10_000,
  backoff: 200,
  backoffMax: 10_000,
  away: IN_BROWSER ? Infinity : 300_000,
  attempts: 8,
};

/** A monotonic clock. */
export const now = () => performance.now();

/** A random delay below `delay`, so that clients do not reconnect at the same moment. */
export const jittered = (delay) => delay * Math.random();

/** An unguessable id. `crypto.randomUUID` does not exist on a page over plain http. */
export const randomId = () => hex(crypto.getRandomValues(new Uint8Array(16)));
