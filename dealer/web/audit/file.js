/**
 * Where a bundle comes from, and how it and this page are taken home.
 *
 * A bundle comes from the house that served this page, from a file, or out of this very page: then
 * it stands there as base64, so that not one of its bytes is changed by standing in a page.
 */

const INSIDE = "bundle";
const AT_TABLE = /^\/tables\/([0-9a-f]{32})\/audit$/;

/** A sentence's name in the texts' `problems`, why there is no bundle. */
export class NoBundle extends Error {
  constructor(problem, status = null) {
    super(problem);
    Object.assign(this, { problem, status });
  }
}

/** The table whose audit this address is, or null. */
export const tableOf = ({ pathname }) => AT_TABLE.exec(pathname)?.[1] ?? null;

/** The bytes of a table's bundle, from the house; its own players show their token. */
export async function fetchBundle(table, token) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(`/tables/${table}/bundle.jsonl`, { headers, cache: "no-store" })
    .catch(() => null);
  if (answer === null) throw new NoBundle("nothing");
  if (answer.status === 401) throw new NoBundle("private");
  if (answer.status === 404) throw new NoBundle("unknown");
  if (!answer.ok) throw new NoBundle("refused", answer.status);
  return new Uint8Array(await answer.arrayBuffer().catch(() => {
    throw new NoBundle("nothing");
  }));
}

/** The bytes of a file that somebody chose or dropped. */
export async function readFile(file) {
  const bytes = await file.arrayBuffer().catch(() => null);
  if (bytes === null) throw new NoBundle("unreadable");
  return new Uint8Array(bytes);
}

/** Whether this page has a bundle inside. */
export const hasInside = () => document.getElementById(INSIDE) !== null;

/** The bytes of the bundle inside this page. */
export async function readInside() {
  try {
    const letters = atob(document.getElementById(INSIDE).textContent);
    return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  } catch {
    throw new NoBundle("damaged");
  }
}

/** Whether this page is the one that needs nothing beside it. */
export const isOneFile = () => document.querySelector("script[type=module][src]") === null;

/** The text of this page as it came. To be asked for before the page is changed. */
export function ownText() {
  const copy = document.documentElement.cloneNode(true);
  copy.removeAttribute("class"); // how this browser likes its cards coloured
  copy.querySelector(`#${INSIDE}`)?.remove();
  return `<!doctype html>\n${copy.outerHTML}\n`;
}

/** The page as one file, from the house; null if it does not come. */
export async function fetchPage() {
  const answer = await fetch("/audit.html").catch(() => null);
  return answer?.ok ? answer.text() : null;
}

/** The page with a bundle in it. */
export function withBundle(page, bytes) {
  let letters = "";
  for (let at = 0; at < bytes.length; at += 4096) {
    letters += String.fromCharCode(...bytes.subarray(at, at + 4096));
  }
  const element = `<script type="text/plain" id="${INSIDE}">${btoa(letters)}</script>`;
  const end = page.lastIndexOf("</body>");
  return `${page.slice(0, end)}${element}\n${page.slice(end)}`;
}

/** Let the browser keep bytes or text as a file. */
export function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
