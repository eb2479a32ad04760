/**
 * How a shuffle was made, as three pictures: everyone drops a sealed envelope, then all are opened,
 * and together they give the order of the cards. `verdict.css` moves them.
 */

import { byId, element } from "../dom.js";
import { svgElement } from "../svg.js";
import { explanation as texts } from "../texts.js";

const MOST = 5; // envelopes that are drawn
const WIDE = 26; // of an envelope
const HIGH = 17;
const GAP = 4;

/**
 * Show the pictures; nothing for null.
 *
 * @param {{ names: string[], houseOnly: boolean } | null} given who put something into the
 *   shuffles, and whether one of these was the house's alone
 */
export function showEnvelopes(given) {
  const place = byId("envelopes");
  place.hidden = given === null;
  if (given === null) return;
  const { names, houseOnly } = given;
  const envelopes = Math.min(MOST, names.length);
  place.replaceChildren(
    scene(dropped(envelopes), texts.envelopes.sealed({ names })),
    scene(opened(envelopes), texts.envelopes.opened),
    scene(order(), houseOnly ? texts.envelopes.orderOfHouse : texts.envelopes.order),
  );
}

const scene = (shapes, caption) => element("li", {},
  svgElement("svg", { viewBox: "0 0 160 84", "aria-hidden": "true" }, ...shapes),
  element("span", {}, caption));

/** Envelopes above the slot of a box. */
function dropped(count) {
  return [
    ...each(count, (x, index) => envelope(x, 6 + 5 * (index % 2), false, index)),
    path("box", "M40 52h80v28h-80z"),
    path("slot", "M58 58h44"),
  ];
}

/** The same envelopes, open, each with its letter. */
const opened = (count) => each(count, (x, index) => envelope(x, 52, true, index));

/** A fan of cards. */
function order() {
  return ["♠", "♥", "♣", "♦"].map((suit, index) => svgElement(
    "g", { class: `card-${index}`, transform: `rotate(${index * 14 - 21} 80 120)` },
    svgElement("rect", { x: 64, y: 14, width: 32, height: 45, rx: 3, class: "paper" }),
    Object.assign(svgElement("text", {
      x: 72, y: 29, class: index % 2 === 1 ? "red" : "black",
    }), { textContent: `${suit}\ufe0e` })));
}

function each(count, draw) {
  const all = count * WIDE + (count - 1) * GAP;
  return Array.from({ length: count }, (_, index) =>
    draw(80 - all / 2 + index * (WIDE + GAP), index));
}

function envelope(x, y, open, index) {
  const [right, down, middle] = [x + WIDE, y + HIGH, x + WIDE / 2];
  return svgElement(
    "g", { class: `envelope ${open ? "open" : "sealed"} nr-${index}` },
    ...(open ? [
      path("flap", `M${x} ${y}L${middle} ${y - 10}L${right} ${y}z`),
      svgElement("rect", {
        class: "letter", x: x + 3, y: y - 26, width: WIDE - 6, height: 34, rx: 1,
      }),
      path("lines", `M${x + 7} ${y - 20}h12M${x + 7} ${y - 15}h12M${x + 7} ${y - 10}h8`),
      path("back", `M${x} ${y}L${middle} ${y + 9}L${right} ${y}V${down}H${x}z`),
    ] : [
      svgElement("rect", { class: "back", x, y, width: WIDE, height: HIGH, rx: 1 }),
      path("fold", `M${x} ${y}L${middle} ${y + 9}L${right} ${y}`),
      svgElement("circle", { class: "seal", cx: middle, cy: y + 9, r: 3 }),
    ]),
  );
}

const path = (name, d) => svgElement("path", { class: name, d });
