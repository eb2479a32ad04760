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

/** Where to play on from a version of a closed round, or without one from its first shuffle. */
export const practiceUrl = ({ table, round, version = null }) =>
  serverUrl(`#from=${table}&round=${round}${version === null ? "" : `&version=${version}`}`);

/** The round that the fragment of such an address names, as for `open`; null without one. */
export function practiceOf(fragment) {
  const form = /^#from=([0-9a-f]{32})&round=(\d{1,9})(?:&version=(\d{1,15}))?$/;
  const [, table, round, version] = form.exec(fragment) ?? [];
  if (table === undefined) return null;
  return { table, round: Number(round), version: version && Number(version) };
}

/** The page that audits the round that a practice table was laid out from, at that moment. */
export const sourceUrl = ({ table, round, version }) =>
  tableUrl(table, `/audit#round=${round}&version=${version}`);

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
