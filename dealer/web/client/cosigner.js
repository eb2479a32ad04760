/** The player's own Ed25519 key, and cosignatures (C2SP cosignature/v1) of checkpoints with it. */

import { hex, join, keyId, playerOf, readCheckpoint } from "../verify.js";
import { ConfigurationError } from "./errors.js";

/** @typedef {import("../client.js").Cosigner} Cosigner */
/** @typedef {import("../client.js").Store} Store */

const utf8 = new TextEncoder();

/**
 * The player's line below a checkpoint, with the current time.
 *
 * @param {Cosigner} cosigner
 * @param {string} note
 */
export async function cosign({ key, sign }, note) {
  const { text } = readCheckpoint(note);
  const time = Math.floor(Date.now() / 1000);
  const stamp = new Uint8Array(8);
  new DataView(stamp.buffer).setBigUint64(0, BigInt(time));
  const signature = await sign(utf8.encode(`cosignature/v1\ntime ${time}\n${text}`));
  const player = playerOf(key);
  const blob = join(keyId(player), stamp, signature);
  return `\u2014 ${player.name} ${btoa(String.fromCharCode(...blob))}\n`;
}

/**
 * The player's key for a table, or the store's general one. It is generated if there is none,
 * unless `draw` is false. Null without a key, and where WebCrypto has no Ed25519.
 *
 * @param {Store} store
 * @param {{ table?: string | null, draw?: boolean }} [options]
 * @returns {Promise<Cosigner | null>}
 */
export async function playerKey(store, { table = null, draw = true } = {}) {
  if (!globalThis.crypto?.subtle) return null;
  const { subtle } = globalThis.crypto;
  const path = table === null ? "dealer/player" : `dealer/${table}/player`;
  try {
    let stored = store.get(path);
    if (!stored && !draw) return null;
    const generated = stored ? null : JSON.stringify(await generateKey(subtle));
    stored ||= store.get(path); // another page of this browser may have stored one meanwhile
    if (!stored) store.set(path, generated);
    const jwk = JSON.parse(stored || generated);
    const secret = await subtle.importKey("jwk", jwk, "Ed25519", false, ["sign"]);
    const letters = atob(jwk.x.replaceAll("-", "+").replaceAll("_", "/"));
    return {
      key: hex(Uint8Array.from(letters, (letter) => letter.charCodeAt(0))),
      async sign(/** @type {Uint8Array<ArrayBuffer>} */ message) {
        return new Uint8Array(await subtle.sign("Ed25519", secret, message));
      },
    };
  } catch (error) {
    if (error.name === "NotSupportedError") return null;
    throw new ConfigurationError(`The player's key cannot be used: ${error.message}`);
  }
}

async function generateKey(subtle) {
  const pair = await subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const { kty, crv, d, x } = await subtle.exportKey("jwk", pair.privateKey);
  return { kty, crv, d, x };
}
