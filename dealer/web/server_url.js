/**
 * Addresses of the server that a page came from, which a proxy may serve under any path.
 *
 * The modules of pages are at `web/<hash>/` of the server. In a copy of the page on a disk, which has
 * no server, the addresses have no meaning.
 */

/**
 * The whole address of a path of the server.
 *
 * @param {string} [path] such as `audit`; without one, that of the lobby
 */
export const serverUrl = (path = "") => new URL(`../../${path}`, import.meta.url).href;

/** The address of a table's page, or of a file of the table, such as `/bundle.jsonl`. */
export const tableUrl = (id, what = "") => serverUrl(`tables/${id}${what}`);

/** The address of the server's WebSocket. */
export const socketUrl = () => serverUrl("ws").replace(/^http/, "ws");

/**
 * The JSON at a path of the server; null without it.
 *
 * @param {string} path such as `games.json`
 */
export async function fetchJson(path) {
  try {
    const answer = await fetch(serverUrl(path));
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}
