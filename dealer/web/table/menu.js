/** A menu: a dialog with what is about something, and buttons for what can be done with it. */

import { choices, dialog } from "./dialogs.js";

const SEAT_MENU = new URL("./seat_menu.js", import.meta.url).href;

/**
 * @typedef {object} Offer
 * @property {boolean} possible
 * @property {string} label
 * @property {"public" | "final" | null} [mark]
 * @property {() => any} action what is attempted, or a promise of it; null if nothing is
 */

/**
 * Show a menu, and attempt what is chosen.
 *
 * @param {any} page
 * @param {string} title
 * @param {Node[]} intro
 * @param {Offer[]} offers
 * @param {{ count?: number }} [options] of the attempt
 */
export async function menu(page, title, intro, offers, options = {}) {
  const chosen = await dialog(title, (close) => [
    ...intro,
    choices(close, offers.filter(({ possible }) => possible).map(
      ({ label, mark, action }) => ({ label, mark, value: action })), { ranked: true }),
  ]);
  const action = await chosen?.();
  if (action) await page.attempt(action, options);
}

/** The module of the menus of seats, which is loaded when the first one is opened. */
export const seatMenu = () => import(SEAT_MENU);
