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

const BUSY = [429, 503];
const PATIENCE = 120_000;

/**
 * What the server answers; while it asks for patience, ask again when it said. Null without an
 * answer.
 *
 * @param {URL | string} url
 * @param {RequestInit} [options]
 * @returns {Promise<Response | null>}
 */
export async function fetchPatiently(url, options) {
  const until = Date.now() + PATIENCE;
  for (;;) {
    const answer = await fetch(url, options).catch(() => null);
    const wait = 1000 * Number(answer?.headers.get("retry-after") ?? Number.NaN);
    if (!BUSY.includes(answer?.status) || !(wait > 0) || Date.now() + wait > until) return answer;
    await new Promise((again) => { setTimeout(again, wait); });
  }
}

/**
 * The JSON at a path of the server; null without it.
 *
 * @param {string} path such as `games.json`
 */
export async function fetchJson(path) {
  try {
    const answer = await fetchPatiently(serverUrl(path));
    return answer?.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}
