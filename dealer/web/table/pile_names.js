/**
 * Names of piles in any script. The log has plain names, 1 to 32 printable ASCII characters; another
 * name is written as `~` and the base64url of its UTF-8, and shown as what it says.
 */

import { safeText } from "../dom.js";

const PLAIN = /^[!-~]{1,32}$/;
const WRITTEN = /^~([A-Za-z0-9_-]{1,31})$/;
const MAX_BYTES = 23; // of a name that is not plain: 31 characters of base64url

/**
 * The plain name for what a player typed; a name that is too long is cut.
 *
 * @param {string} text
 */
export function plainName(text) {
  const typed = text.trim();
  if (PLAIN.test(typed)) return typed;
  let shown = "";
  for (const character of typed) {
    if (bytesOf(shown + character).length > MAX_BYTES) break;
    shown += character;
  }
  const base64 = btoa(String.fromCharCode(...bytesOf(shown)));
  return `~${base64.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")}`;
}

/**
 * What a plain name says if it is written so; null for other names.
 *
 * @param {string} name
 */
export function writtenTitle(name) {
  const found = WRITTEN.exec(name);
  if (found === null) return null;
  try {
    const binary = atob(found[1].replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(binary, (one) => one.charCodeAt(0));
    const title = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return PLAIN.test(title) ? null : safeText(title);
  } catch {
    return null;
  }
}

const bytesOf = (text) => new TextEncoder().encode(text);
