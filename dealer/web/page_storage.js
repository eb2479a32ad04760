/** Storage of the pages: the browser's, or memory where it is denied, as in some frames. */

/** The player's name. */
export const PLAYER = "dealer/page/name";
/** How the host has removed this browser's player from a table, by the table's id. */
export const REMOVED = "dealer/page/removed/";
/** The table that this player has just joined in the lobby: its page need not say "welcome back". */
export const ARRIVING = "dealer/page/arriving";
const OWN_TABLES = "dealer/page/tables";
const OWN_TABLES_MAX = 20;
const PROBE = "dealer/page/probe";

/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} Values */

/** @type {Record<string, Map<string, string>>} by name of the storage that is denied */
const inMemory = {};

/**
 * @param {"localStorage" | "sessionStorage"} name
 * @returns {Values}
 */
function open(name) {
  let storage = null;
  try {
    storage = globalThis[name];
    storage.setItem(PROBE, "");
    storage.removeItem(PROBE);
    return storage;
  } catch {
    if (storage?.length) return storage; // a full one can be read
  }
  const values = new Map(globalThis.history?.state?.[name] ?? []);
  inMemory[name] = values;
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
}

/** For all pages of this server. */
export const stored = open("localStorage");

/** For this tab. */
export const tabStored = open("sessionStorage");

/**
 * Keep a preference, or another value without which the pages work: a full storage does not.
 *
 * @param {string} key
 * @param {string} value
 * @param {Values} [storage]
 */
export function remember(key, value, storage = stored) {
  try {
    storage.setItem(key, value);
  } catch {
    // It lasts as long as the page.
  }
}

/**
 * @typedef {{ id: string, name: string | null, seat: number, closed: boolean, practice: boolean,
 *   deal?: number, since?: number }} OwnTable `deal`: the round that a practice table is
 *   from; `since`: ms since 1970
 */

/**
 * The open or the closed tables at which this browser has a seat, the newest first.
 *
 * @param {{ closed: boolean }} which
 * @returns {OwnTable[]}
 */
export const ownTables = ({ closed }) => readOwn().filter((one) => one.closed === closed);

/** @returns {OwnTable[]} */
function readOwn() {
  try {
    const tables = JSON.parse(stored.getItem(OWN_TABLES) ?? "[]");
    return Array.isArray(tables) ? tables : [];
  } catch {
    return [];
  }
}

/**
 * Keep that this browser has a seat at a table, or, with null, that it has none.
 *
 * @param {string} id
 * @param {OwnTable | null} table
 */
export function keepOwnTable(id, table) {
  const before = readOwn();
  const others = before.filter((one) => one.id !== id);
  const since = before.find((one) => one.id === id)?.since ?? Date.now();
  const tables = table === null ? others : [{ ...table, since }, ...others].slice(0, OWN_TABLES_MAX);
  const text = JSON.stringify(tables);
  if (text !== (stored.getItem(OWN_TABLES) ?? "[]")) remember(OWN_TABLES, text);
}

/** Whether a page can return to its seat. */
export const persistent = !("localStorage" in inMemory);

/** Open another page of this server, and hand it the memory in the entry of the history. */
export function goTo(path) {
  if (persistent) {
    location.assign(path);
    return;
  }
  // Tokens are never in a URL, and the next site in a frame can read `window.name`.
  const lists = Object.entries(inMemory).map(([name, values]) => [name, [...values]]);
  history.replaceState(Object.fromEntries(lists), "", path);
  location.reload();
}
