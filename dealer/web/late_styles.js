/** What a page loads after its first paint: styles and pictures. */

/** Whether the page came from the server: a copy on a disk has no other files. */
export const isServed = () => document.querySelector('link[rel="manifest"]') !== null;

/**
 * Add a stylesheet of this folder to the page, once.
 *
 * @param {string} path such as `courts.css`
 */
export function addStyles(path) {
  const href = new URL(path, import.meta.url).href;
  const present = Array.from(document.querySelectorAll("link"), (link) => link.href);
  if (!isServed() || present.includes(href)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  document.head.append(link);
}

/** Load the pictures of court cards when the page is idle; until then cards show their letters. */
export function addCourtPictures() {
  const idle = globalThis.requestIdleCallback ?? ((run) => setTimeout(run, 200));
  idle(() => addStyles("courts.css"));
}
