/**
 * The pips of number cards, as backgrounds in a style sheet of its own: `courts.css` says from which
 * width of a card on they are shown, instead of one large suit.
 */

import { isServed, whenIdle } from "./late_styles.js";

/** A suit's shape around 0, 20 units high, its colour, and that among four colours. */
const SUITS = {
  s: [
    "M0-10C4-5 9-1 9 3 9 5.5 7 7 5 7 3.3 7 2 6.3 1 5 1.2 7.5 2 9 3.5 10H-3.5C-2 9-1.2 7.5-1 5" +
      "-2 6.3-3.3 7-5 7-7 7-9 5.5-9 3-9-1-4-5 0-10Z", "#1d1f1c", "#1d1f1c",
  ],
  h: [
    "M0 9C-4 4-9 0-9-4-9-7-7-9-4.6-9-2.6-9-.8-8 0-6 .8-8 2.6-9 4.6-9 7-9 9-7 9-4 9 0 4 4 0 9Z",
    "#b31528", "#b31528",
  ],
  d: ["M0-10 7 0 0 10-7 0Z", "#b31528", "#1a4fb8"],
  c: [
    "M0-10A4.2 4.2 0 0 1 3-3A4.2 4.2 0 1 1 1 4C1.2 7 2 9 3.5 10H-3.5C-2 9-1.2 7-1 4A4.2 4.2 0 1 1" +
      "-3-3A4.2 4.2 0 0 1 0-10Z", "#1d1f1c", "#156433",
  ],
};

/** By rank the heights of the pips in the middle, and at each side: 0 is the middle, 6 the edge. */
const RANKS = {
  2: [[-6, 6], []], 3: [[-6, 0, 6], []], 4: [[], [-6, 6]], 5: [[0], [-6, 6]], 6: [[], [-6, 0, 6]],
  7: [[-3], [-6, 0, 6]], 8: [[-3, 3], [-6, 0, 6]], 9: [[0], [-6, -2, 2, 6]],
  T: [[-4, 4], [-6, -2, 2, 6]],
};
const WIDTH = 100 * Object.keys(RANKS).length;

/**
 * Draw number cards with as many pips as they have. The browser makes a document of each picture, for
 * some milliseconds: so there is one for each suit, and it is made when the page is idle, before a
 * card is dealt.
 */
export function addPips() {
  if (!isServed()) return; // a copy on a disk has no `courts.css`
  const sheet = new CSSStyleSheet();
  Object.keys(RANKS).forEach((rank, place) => {
    sheet.insertRule(`.card[data-card^="${rank}"] { --pips: ${place}; }`);
  });
  document.adoptedStyleSheets.push(sheet);
  for (const [suit, [shape, plain, ofFour]] of Object.entries(SUITS)) {
    addPicture(sheet, `.card[data-suit="${suit}"]`, picture(shape, plain));
    if (plain !== ofFour) {
      addPicture(sheet, `.four-colour .card[data-suit="${suit}"]`, picture(shape, ofFour));
    }
  }
}

function addPicture(sheet, cards, url) {
  whenIdle(async () => {
    const image = new Image();
    image.src = url;
    await image.decode();
    // Not a property for `var()`, which each card would read again.
    const numbers = `${cards}:not([data-court], [data-card^="A"])`;
    const rule = `${numbers}::before { background-image: url("${url}"); }`;
    sheet.insertRule(rule, sheet.cssRules.length);
  });
}

/** The cards of a suit side by side, each of 100 by 140; pips below the middle are upside down. */
function picture(shape, colour) {
  const pips = Object.values(RANKS).flatMap(([middle, side], place) => {
    const at = (x) => (y) => {
      const scale = y > 0 ? ".88-.88" : ".88";
      const to = `translate(${100 * place + x} ${(70 + y * 7.7).toFixed(1)}) scale(${scale})`;
      return `<use href="#p" transform="${to}"/>`;
    };
    return [...middle.map(at(50)), ...side.flatMap((y) => [at(37)(y), at(63)(y)])];
  });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} 140"><defs>` +
    `<path id="p" fill="${colour}" d="${shape}"/></defs>${pips.join("")}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
