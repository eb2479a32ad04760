/**
 * Keeps `/audit` in the browser, so that it opens without a network, by the service worker in
 * audit_worker.js. Tables and bundles are never kept.
 */

const WORKER = "/audit-worker.js";
const SCOPE = "/audit";

/** Install the worker, where the browser allows that. */
export async function keepOffline() {
  try {
    const { trustedTypes } = /** @type {any} */ (globalThis);
    const policy = trustedTypes?.createPolicy("audit-worker", { createScriptURL: () => WORKER });
    const address = policy?.createScriptURL("") ?? WORKER;
    await navigator.serviceWorker.register(address, { scope: SCOPE });
  } catch {
    // Plain http, a sandboxed frame, storage that is denied: the page needs the network then.
  }
}
