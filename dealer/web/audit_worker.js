/**
 * The service worker of the audit page: with it `/audit` opens without a network.
 *
 * The cache has the page and its files of one version, all stored when that version's worker is
 * installed. The page itself comes from the network whenever that answers, so that no browser shows
 * an old version. No other request is answered or stored: no table, no bundle, no call.
 */

// The server fills these in: the address of the files of its version, the hash of the page, which
// the operator's title changes too, and the paths of the page's files.
const FOLDER = "/web/@/";
const VERSION = "";
const FILES = [];
// A proxy may serve the server under a path.
const ROOT = new URL(".", location.href).pathname.slice(0, -1);
const PAGE = `${ROOT}/audit`;
const HELD = ROOT + FOLDER;
const CACHE = `dealer/audit ${HELD} ${VERSION}`;

const worker = /** @type {any} */ (globalThis);

async function install() {
  const page = await fetch(PAGE, { cache: "no-store" });
  require(page.ok && (await page.clone().text()).includes(FOLDER));
  const cache = await caches.open(CACHE);
  await Promise.all(FILES.map(async (path) => {
    const file = await fetch(HELD + path);
    require(file.ok && file.headers.get("cache-control")?.includes("immutable"));
    await cache.put(HELD + path, file);
  }));
  await cache.put(PAGE, page);
  await worker.skipWaiting();
}

/** Another version of the server, beside this one, may answer: then the browser tries again later. */
function require(isOfThisVersion) {
  if (!isOfThisVersion) throw new Error("The server that answered has another version.");
}

async function activate() {
  for (const name of await caches.keys()) {
    // Another server may have another path of this origin.
    if (name.startsWith(`dealer/audit ${ROOT}/web/`) && name !== CACHE) await caches.delete(name);
  }
}

const stored = async (address) => (await caches.open(CACHE)).match(address);

async function pageFor(request) {
  try {
    return await fetch(request);
  } catch (error) {
    const page = await stored(PAGE);
    if (page === undefined) throw error;
    return page;
  }
}

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(activate()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate" && pathname === PAGE) event.respondWith(pageFor(request));
  else if (pathname.startsWith(HELD) && FILES.includes(pathname.slice(HELD.length))) {
    event.respondWith(stored(pathname).then((file) => file ?? fetch(request)));
  }
});
