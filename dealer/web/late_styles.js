/** What a page loads after its first paint: styles and pictures. */

/** Whether the page came from the server: a copy on a disk has no other files. */
export const isServed = () => document.querySelector('link[rel="manifest"]') !== null;

/** @type {Map<string, Promise<unknown>>} */
const added = new Map();

/**
 * Add a stylesheet of this folder to the page, once.
 *
 * @param {string} path such as `courts.css`
 * @returns {Promise<unknown>} resolves when it is there, or cannot be loaded
 */
export function addStyles(path) {
  if (!added.has(path)) added.set(path, load(path));
  return /** @type {any} */ (added.get(path));
}

async function load(path) {
  const href = new URL(path, import.meta.url).href;
  const present = Array.from(document.querySelectorAll("link"), (link) => link.href);
  if (!isServed() || present.includes(href)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  await new Promise((done) => {
    link.onload = link.onerror = done;
    document.head.append(link);
  });
}

/** Call `run` when the page is idle. */
export function whenIdle(run) {
  const idle = globalThis.requestIdleCallback ?? ((late) => setTimeout(late, 200));
  idle(() => run());
}

/** Load the pictures of cards when the page is idle; until then cards show letters and one suit. */
export function addCardPictures() {
  whenIdle(() => addStyles("courts.css"));
}
