/** Sounds of cards; off until the player wants them. */

import { remember, stored } from "../page_storage.js";

const SOUNDS = "dealer/page/sounds";
const NOISE = new URL("./noise.js", import.meta.url).href;

/** Whether this browser's player wants sounds. */
export const hasSounds = () => stored.getItem(SOUNDS) === "on";

/** Switch the sounds on or off, and remember that; a click is needed before browsers play any. */
export function useSounds(on) {
  remember(SOUNDS, on ? "on" : "off");
  if (on) play();
}

/** @param {import("../client.js").TableEvent} event */
export function soundOf({ type, live }) {
  if (live && (type === "CardMoved" || type === "CardDrawn") && hasSounds()) play();
}

function play() {
  import(NOISE).then(({ soundOfCard }) => soundOfCard(), () => {}); // without it the game goes on
}
