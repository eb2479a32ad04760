/** Storage of the pages: the browser's, or memory where it is denied, as in some frames, or full. */

/** The player's name. */
export const PLAYER = "dealer/page/name";
/** The table that this player has just joined in the lobby: its page need not say "welcome back". */
export const ARRIVING = "dealer/page/arriving";
const PROBE = "dealer/page/probe";

/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} Values */

/** @type {Record<string, Map<string, string>>} what the browser does not store, by storage */
const inMemory = {};
let denied = false;

/**
 * @param {"localStorage" | "sessionStorage"} name
 * @returns {Values}
 */
function open(name) {
  const storage = storageOfBrowser(name);
  const values = new Map(globalThis.history?.state?.[name] ?? []);
  inMemory[name] = values;
  denied ||= storage === null;
  return {
    getItem: (key) => values.get(key) ?? storage?.getItem(key) ?? null,
    setItem(key, value) {
      values.set(key, value);
      if (storage === null) return;
      try {
        storage.setItem(key, value);
        values.delete(key);
      } catch {
        // A full storage: the value lasts as long as the page.
      }
    },
    removeItem(key) {
      values.delete(key);
      storage?.removeItem(key);
    },
  };
}

/**
 * @param {"localStorage" | "sessionStorage"} name
 * @returns {Storage | null} null if it is denied; a full one can be read
 */
function storageOfBrowser(name) {
  let storage = null;
  try {
    storage = globalThis[name];
    storage.setItem(PROBE, "");
    storage.removeItem(PROBE);
  } catch {
    if (!storage?.length) return null;
  }
  return storage;
}

/** For all pages of this server. */
export const stored = open("localStorage");

/** For this tab. */
export const tabStored = open("sessionStorage");

/** Whether a page can return to its seat. */
export const persistent = () => !denied && Object.values(inMemory).every((one) => one.size === 0);

/** Open another page of this server, and hand it the memory in the entry of the history. */
export function goTo(path) {
  if (persistent()) {
    location.assign(path);
    return;
  }
  const lists = Object.entries(inMemory).map(([name, values]) => [name, [...values]]);
  history.replaceState(Object.fromEntries(lists), "", path);
  location.reload();
}
