/**
 * What this browser and its owner know of a table from elsewhere: its key, and signed heads.
 *
 * The client that plays keeps them, with the token that opens a private table, in the browser's
 * store under `dealer/<table>/` (`client.js` says more); by hand they come as text.
 */

const KEY = /^[0-9a-f]{64}$/;

/** What the client kept of a table when it was there: { key, notes, token }, null if nothing. */
export function keptOf(table) {
  const { key = null, token, host_token: host } = read(table, "seat") ?? {};
  const heads = read(table, "heads") ?? [];
  return { key, token: token ?? host ?? null, notes: heads.map(({ note }) => note) };
}

function read(table, name) {
  try {
    return JSON.parse(localStorage.getItem(`dealer/${table}/${name}`));
  } catch {
    return null; // a browser that keeps nothing, or something that no client wrote
  }
}

/** A key as it was written by hand: null for none, undefined for what is no key. */
export function keyIn(text) {
  const key = text.trim().toLowerCase();
  if (key === "") return null;
  return KEY.test(key) ? key : undefined;
}

/** The notes in a text: one as it is, or many, each in a JSON line; undefined if it is neither. */
export function notesIn(text) {
  if (text.trim() === "") return [];
  if (!text.startsWith("{")) return [text.endsWith("\n") ? text : `${text}\n`];
  try {
    const notes = text.trim().split("\n").map((line) => JSON.parse(line).note);
    return notes.every((note) => typeof note === "string") ? notes : undefined;
  } catch {
    return undefined;
  }
}
