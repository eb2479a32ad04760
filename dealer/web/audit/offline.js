/**
 * Keeps the page `audit` in the browser, so that it opens without a network, by the service worker in
 * audit_worker.js. Tables and bundles are never kept.
 */

import { serverUrl } from "../server_url.js";

/** Install the worker, where the browser allows that. */
export async function keepOffline() {
  try {
    const { trustedTypes } = /** @type {any} */ (globalThis);
    const worker = serverUrl("audit-worker.js");
    const policy = trustedTypes?.createPolicy("audit-worker", { createScriptURL: () => worker });
    const address = policy?.createScriptURL("") ?? worker;
    // Not the whole server: no request of a table passes through the worker.
    await navigator.serviceWorker.register(address, { scope: serverUrl("audit") });
  } catch {
    // Plain http, a sandboxed frame, storage that is denied: the page needs the network then.
  }
}
