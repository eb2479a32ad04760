/**
 * Cards fly from where they lay to where they lie.
 *
 * Drawing comes first and flying after it, on pictures of their own that nobody can touch: so no
 * flight ever holds up a player. Who wants less motion sees none, and neither does who comes back
 * to a table where much has happened.
 */

import { cardElement } from "../cards.js";

const MOST = 60;
const FLIGHT_MS = 300;
const STAGGER_MS = 45;
const STAGGER_ALL_MS = 900;

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Where the cards of `state` lie, for `fly` to compare with; null where nothing will fly. */
export function lookAt(state) {
  if (calm.matches || document.hidden || state?.round == null) return null;
  const stacks = new Map();
  for (const [name, cards] of Object.entries(state.round.stacks)) {
    for (const { slot, card } of cards) if (slot !== null) stacks.set(slot, { name, card });
  }
  const rects = new Map();
  for (const place of document.querySelectorAll("[data-stack]")) {
    rects.set(place.dataset.stack, rectOf(place));
  }
  for (const option of document.querySelectorAll("#hand [data-slot]")) {
    rects.set(Number(option.dataset.slot), option.firstElementChild.getBoundingClientRect());
  }
  return { round: state.round.number, stacks, rects };
}

/** Let fly what lies elsewhere than `before` told; `own` is the name of one's own hand. */
export function fly(before, state, own) {
  if (before === null || state.round?.number !== before.round) return;
  const flights = [];
  for (const [name, cards] of Object.entries(state.round.stacks)) {
    for (const { slot, card } of cards) {
      const was = before.stacks.get(slot);
      if (was === undefined || was.name === name) continue;
      const { rects } = before;
      const from = rects.get(was.name === own ? slot : was.name) ?? rects.get(was.name);
      flights.push({ slot, card: card ?? was.card, from, to: name });
    }
  }
  if (flights.length === 0 || flights.length > MOST) return;
  const stagger = Math.min(STAGGER_MS, STAGGER_ALL_MS / flights.length);
  flights.sort((a, b) => b.slot - a.slot);
  flights.forEach((flight, at) => launch(flight, own, at * stagger));
}

function launch({ slot, card, from, to }, own, delay) {
  const target = to === own
    ? document.querySelector(`#hand [data-slot="${slot}"]`)?.firstElementChild
    : null;
  const place = document.querySelector(`[data-stack="${CSS.escape(to)}"]`);
  const end = target?.getBoundingClientRect() ?? (place && rectOf(place));
  if (from === undefined || !end) return;
  const picture = cardElement(card);
  picture.classList.add("flying");
  picture.style.setProperty("--card", `${end.width}px`);
  document.querySelector("#flights").append(picture);
  const at = (rect) =>
    `translate(${rect.left}px, ${rect.top}px) scale(${rect.width / end.width})`;
  const easing = "cubic-bezier(0.2, 0.7, 0.2, 1)";
  const timing = { duration: FLIGHT_MS, delay, easing, fill: "both" };
  const flight = picture.animate([{ transform: at(from) }, { transform: at(end) }], timing);
  flight.finished.finally(() => picture.remove());
  target?.animate([{ opacity: 0 }, { opacity: 0 }], { duration: FLIGHT_MS + delay });
}

/** Where a card of this place lies: its top one, or else where one would. */
function rectOf(place) {
  const cards = place.querySelectorAll(".card");
  if (cards.length > 0) return cards[cards.length - 1].getBoundingClientRect();
  const { left, top, width, height } = place.getBoundingClientRect();
  const wide = Math.min(48, width);
  return new DOMRect(left + (width - wide) / 2, top + height / 2 - wide * 0.7, wide, wide * 1.4);
}
