/** Where players and their cards are around a table: at play and in a replay. */

import { colourOf } from "./chips.js";
import { setAttribute } from "./dom.js";

const TILT = 0.28; // of many players' cards: the upper and the lower one are not one above the other
const BESIDE = 0.4; // of a card's width: what another card of the same player leaves visible
const CROSS = 4; // players whose cards are a cross, or a row where the room is low
const ROW = 0.53; // of a card's width: how far each card of a cross moves for a row

/**
 * Where each of `count` seats is on a wide screen, from the left side over the top to the right:
 * `top` of them are at the top and `side` at each side.
 */
export function placesAround(count) {
  const side = count < 2 ? 0 : count < 6 ? 1 : 2;
  const top = count - 2 * side;
  const of = (index) => {
    // At the left the first one is the lowest.
    if (index < side) return { side: "left", index: side - index, off: 0 };
    if (index >= count - side) return { side: "right", index: index - (count - side) + 1, off: 0 };
    const position = index - side;
    const offset = top === 1 ? 0 : (2 * position) / (top - 1) - 1;
    return { side: "top", index: position + 1, off: offset * offset };
  };
  return { top, side, of };
}

/**
 * Put the cards of a trick before the players who have played them, in the players' colours: around
 * the middle, the first of `seats` below. `--x` and `--y` are in parts of the room, and `--tilt` is
 * how far a low one moves the card to the side, for a row. Several cards of one player lie beside
 * each other, and so do those that no player has played, in the middle.
 *
 * @param {any[]} pictures
 * @param {(number | null)[]} owners the seats that have played them
 * @param {number[]} seats around the table
 */
export function putBeforePlayers(pictures, owners, seats) {
  const few = seats.length <= CROSS;
  pictures.forEach((picture, place) => {
    const seat = owners[place];
    const index = seats.indexOf(seat ?? 0);
    const turn = (2 * Math.PI * index) / seats.length;
    const [side, y] = index < 0 ? [0, 0] : [-Math.sin(turn), Math.cos(turn)];
    const same = owners.slice(0, place).filter((one) => one === seat).length;
    const tilted = side + TILT * y;
    const aside = Math.round(side); // of few: 1, 0 or -1, so that no card covers another
    const x = (few ? aside : tilted) + BESIDE * same;
    picture.style.setProperty("--x", x.toFixed(2));
    picture.style.setProperty("--y", y.toFixed(2));
    const tilt = few && seats.length !== 3 ? ROW * (aside + y) : 0;
    picture.style.setProperty("--tilt", tilt.toFixed(2));
    // What lies lower or to the right is above: the index of each stays visible.
    picture.style.zIndex = String(Math.round(10 * (tilted + BESIDE * same + 2)));
    setAttribute(picture, "data-colour", index < 0 || seat === null ? null : colourOf(seat));
  });
}
