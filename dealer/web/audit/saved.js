/**
 * What this browser or its user knows of a table independently: its key, and signed checkpoints.
 * The client that plays stores them under `dealer/<table>/` (client/stores.js), together with the
 * token of a private table; users can also enter them as text.
 */

const KEY = /^[0-9a-f]{64}$/;

/**
 * What the client has stored of a table.
 *
 * @param {string} table
 * @returns {{ key: string | null, token: string | null, tokens: string[], notes: string[] }}
 */
export function savedOf(table) {
  const { key = null, token, host_token: hostToken } = read(table, "seat") ?? {};
  const heads = read(table, "heads") ?? [];
  const tokens = [token, hostToken].filter(Boolean);
  return { key, token: tokens[0] ?? null, tokens, notes: heads.map(({ note }) => note) };
}

function read(table, name) {
  try {
    return JSON.parse(localStorage.getItem(`dealer/${table}/${name}`));
  } catch {
    return null; // no storage, or a value that no client wrote
  }
}

/** The key that a user has entered: null for none, undefined if it is invalid. */
export function parseKey(text) {
  const key = text.trim().toLowerCase();
  if (key === "") return null;
  return KEY.test(key) ? key : undefined;
}

/** The notes in a text: one note, or many, each in a JSON line; undefined if it is invalid. */
export function parseNotes(entered) {
  const text = entered.replace(/^\ufeff/, ""); // a text field has neither CR nor CRLF
  if (text.trim() === "") return [];
  if (!text.startsWith("{")) return [text.endsWith("\n") ? text : `${text}\n`];
  try {
    const notes = text.trim().split("\n").map((line) => JSON.parse(line).note);
    return notes.every((note) => typeof note === "string") ? notes : undefined;
  } catch {
    return undefined;
  }
}
