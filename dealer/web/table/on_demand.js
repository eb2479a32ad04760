/**
 * Menus and dialogs that are loaded when they are first opened, or at the first press or key: the
 * table is on the screen before.
 */

export async function openDeck(page) {
  await (await import("./card_menus.js")).openDeck(page);
}

export async function openPile(page, stack) {
  await (await import("./card_menus.js")).openPile(page, stack);
}

export async function openSeat(page, seat) {
  await (await import("./seat_menu.js")).openSeat(page, seat);
}

export async function openPlayers(page) {
  await (await import("./seat_menu.js")).openPlayers(page);
}

export async function setCounter(page) {
  await (await import("./seat_menu.js")).setCounter(page);
}

export async function askSaying() {
  return await (await import("./notes.js")).askSaying();
}

export async function showInvitation(page) {
  await (await import("./links.js")).showInvitation(page);
}

export async function showOwnLink(page) {
  await (await import("./links.js")).showOwnLink(page);
}

/** Load them at the first press or key, so that they open at once, and without a connection. */
export function loadWhenUsed() {
  const load = () => {
    openers.abort();
    for (const module of MODULES) module().catch(() => {}); // tried again when it is opened
  };
  const openers = new AbortController();
  const options = { capture: true, passive: true, signal: openers.signal };
  addEventListener("pointerdown", load, options);
  addEventListener("keydown", load, options);
}

const MODULES = [
  () => import("./card_menus.js"), () => import("./seat_menu.js"), () => import("./qr.js"),
];
