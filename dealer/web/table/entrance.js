/** How the page gets to its table: the connection, the seat of a link or of this browser. */

import { Refused, connect } from "../client.js";
import { element } from "../dom.js";
import { ARRIVING, tabStored } from "../page_storage.js";
import { socketUrl, tableUrl } from "../server_url.js";
import { errorText, table as texts } from "../texts.js";

const RETRY_MS = 2000;

/**
 * Connect to the server, as often as it takes.
 *
 * @param {any} options those of the client's `connect`
 * @param {() => void} failed is called after each failure
 */
export async function connectWithRetry(options, failed) {
  for (;;) {
    try {
      return await connect(socketUrl(), options);
    } catch {
      failed();
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/**
 * The table, from the seat that the page's link or this browser has, or as a spectator; `refusal`
 * is a sentence that says why the link gave no seat, or null.
 */
export async function enter(house, id, { ticket, seat }) {
  let refusal = seat === null ? null : texts.linkInvalid;
  if (ticket !== null) {
    try {
      return { table: await house.join(id, { ticket }), refusal: null };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refusal = errorText(error);
    }
  }
  const table = await house.enter(id, { token: seat ?? undefined });
  return { table, refusal: table.seat === null ? refusal : null };
}

/** Whether the page was loaded again where it was, which needs no welcome. */
export function isReload() {
  /** @type {any} */
  const [entry] = performance.getEntriesByType("navigation");
  return entry?.type === "reload";
}

/** Say that nothing is stored, and link to the page without a frame. */
export function showStorageNotice(notice, id) {
  const href = tableUrl(id);
  const link = element("a", { href, target: "_blank", rel: "noopener" }, texts.ownTab);
  notice.replaceChildren(texts.notStored, " ", link);
  notice.hidden = false;
}

/** Whether the player joined this table in the lobby immediately before; true only once. */
export function hasJustJoined(id) {
  const table = tabStored.getItem(ARRIVING);
  tabStored.removeItem(ARRIVING);
  return table === id;
}
