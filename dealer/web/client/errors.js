/** Every error that the client throws on purpose, and how it accuses a server of cheating. */

import { RuleViolation } from "../verify.js";

/** @typedef {import("../client.js").Evidence} Evidence */
/** @typedef {import("../client.js").Check} Check */

export class DealerError extends Error {
  get name() {
    return this.constructor.name;
  }
}

/** A command or request that the server refused; nothing was changed. */
export class Refused extends DealerError {
  /**
   * @param {string} message
   * @param {{ reason: string, code: number, temporary: boolean, retry_after_ms?: number }} data
   */
  constructor(message, { reason, code, temporary, retry_after_ms }) {
    super(message);
    this.reason = reason;
    this.code = code;
    this.temporary = temporary;
    this.retryAfterMs = retry_after_ms ?? null;
  }
}

/** The server sent two things that cannot both be true, or broke a rule of the game. */
export class HouseCheated extends DealerError {
  /**
   * @param {string} message
   * @param {{ check?: Check["name"], notes?: string[], evidence?: Evidence | null }} [details]
   *   which check failed, and the signed checkpoints that contradict the server
   */
  constructor(message, { check = "moves", notes = [], evidence = null } = {}) {
    super(message);
    this.check = check;
    this.notes = notes;
    this.evidence = evidence;
  }
}

/** There is no dealer server at the address, or the connection to it was lost for good. */
export class HouseUnreachable extends DealerError {}

/** The server closed the connection with a code after which the client must not reconnect. */
export class SessionEnded extends DealerError {
  /**
   * @param {string} message
   * @param {number} code WebSocket close code
   */
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** The close code of a connection whose seat a newer connection took. */
export const SUPERSEDED = 4409;

/** An address, a key or a store that this client cannot work with. */
export class ConfigurationError extends DealerError {}

/**
 * The Refused error for a JSON-RPC error object. Codes below 0 are JSON-RPC's own: of these only
 * -32603, internal error, is worth a retry.
 *
 * @param {{ code?: number, message?: string, data?: object }} error
 */
export function refusedFrom({ code = 0, message = "The server refused the request.", data }) {
  const details = { reason: "refused", temporary: false, ...data };
  if (code < 0) {
    const internal = code === -32603;
    Object.assign(details, {
      reason: internal ? "unavailable" : "bad_request", temporary: internal,
    });
  }
  return new Refused(message, { code, ...details });
}

/** The error of an argument that the client itself refuses, as the server does. */
export const badRequest = (sentence) =>
  new Refused(sentence, { reason: "bad_request", code: 2, temporary: false });

/**
 * The options of a method; Refused unless they are an object with no other members than `known`.
 *
 * @template {object} Options
 * @param {Options} options
 * @param {...string} known
 */
export function optionsOf(options, ...known) {
  const isObject = typeof options === "object" && options !== null && !Array.isArray(options);
  const unknown = isObject ? Object.keys(options).find((name) => !known.includes(name)) : null;
  if (unknown === undefined) return options;
  const wrong = isObject ? `There is no option "${unknown}"` : "Options must be an object";
  throw badRequest(`${wrong}; the options here are: ${known.join(", ")}.`);
}

export const DIFFERENT_KEY = "This table's key has changed, so it is not the same table.";
export const DIFFERENT_LOG = "The server signed a different log than the one it showed here.";
export const LOG_WENT_BACK = "The server went back behind a state of this table that it had shown.";
export const FORKED = "The server signed two different logs of one length.";

/** The events between the last known version and a received one are missing: resume. */
export class MissingEvents extends Error {}

/**
 * Throw HouseCheated.
 *
 * @param {string} message
 * @param {{ check?: Check["name"], notes?: string[] }} [details] as there
 * @returns {never}
 */
export function accuse(message, details) {
  throw new HouseCheated(message, details);
}

/** @type {Record<string, Check["name"]>} the check of an event type; "moves" of all others */
const CHECK_OF_TYPE = { DeckSealed: "seal", CardShown: "cards", EntropyRevealed: "commitment" };

/** The accusation for an exception that an event of `type` has caused. */
export function accusationFor(error, type) {
  const check = Object.hasOwn(CHECK_OF_TYPE, type ?? "") ? CHECK_OF_TYPE[type] : "moves";
  const what = error instanceof RuleViolation ? "breaks a rule" : "is malformed";
  return new HouseCheated(`The server sent something that ${what}: ${error.message}`, { check });
}
