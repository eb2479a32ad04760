/**
 * Where a bundle comes from (the server, a file, or this page itself), and how the page and the
 * bundle are saved. A bundle inside the page is base64, so that all of its bytes stay unchanged.
 */

import { fetchPatiently, serverUrl, tableUrl } from "../server_url.js";

const EMBEDDED_ID = "bundle";
const AUDIT_PATH = /\/tables\/([0-9a-f]{32})\/audit$/;

/** There is no bundle; `problem` is a key of the texts' `problems`. */
export class NoBundle extends Error {
  /**
   * @param {string} problem
   * @param {number | null} status HTTP status
   */
  constructor(problem, status = null) {
    super(problem);
    this.problem = problem;
    this.status = status;
  }
}

/** The table whose audit page this address is, or null. */
export const tableOf = ({ pathname }) => AUDIT_PATH.exec(pathname)?.[1] ?? null;

/**
 * Fetch a table's bundle from the server.
 *
 * @param {string} table
 * @param {string | null} token of a player, for tables that only their players may read
 */
export async function fetchBundle(table, token) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const url = tableUrl(table, "/bundle.jsonl");
  const response = await fetchPatiently(url, { headers, cache: "no-store" });
  if (response === null) throw new NoBundle("network");
  if (response.status === 401) throw new NoBundle("private");
  if (response.status === 404) throw new NoBundle("unknown");
  if (!response.ok) throw new NoBundle("refused", response.status);
  return new Uint8Array(await response.arrayBuffer().catch(() => {
    throw new NoBundle("network");
  }));
}

/** Read a file that the user chose or dropped. */
export async function readFile(file) {
  const bytes = await file.arrayBuffer().catch(() => null);
  if (bytes === null) throw new NoBundle("unreadable");
  return new Uint8Array(bytes);
}

/** Whether this page has a bundle inside. */
export const hasEmbedded = () => document.getElementById(EMBEDDED_ID) !== null;

/** Read the bundle inside this page. */
export async function readEmbedded() {
  try {
    const letters = atob(document.getElementById(EMBEDDED_ID).textContent);
    return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  } catch {
    throw new NoBundle("damaged");
  }
}

/** The HTML of this page. To be called before the page is changed. */
export function ownHtml() {
  const copy = /** @type {HTMLElement} */ (document.documentElement.cloneNode(true));
  copy.removeAttribute("class"); // the preference for card colours
  copy.removeAttribute("data-theme");
  copy.lang = "en"; // as served, until the reader's language is found
  copy.removeAttribute("dir");
  copy.querySelector(`#${EMBEDDED_ID}`)?.remove();
  return `<!doctype html>\n${copy.outerHTML}\n`;
}

/** Fetch the self-contained page from the server; null if that fails. */
export async function fetchPage() {
  const response = await fetchPatiently(serverUrl("audit.html"));
  return response?.ok ? response.text() : null;
}

/** The page with a bundle inside. */
export function withBundle(page, bytes) {
  let letters = "";
  for (let at = 0; at < bytes.length; at += 4096) {
    letters += String.fromCharCode(...bytes.subarray(at, at + 4096));
  }
  const script = `<script type="text/plain" id="${EMBEDDED_ID}">${btoa(letters)}</script>`;
  const end = page.lastIndexOf("</body>");
  return `${page.slice(0, end)}${script}\n${page.slice(end)}`;
}
