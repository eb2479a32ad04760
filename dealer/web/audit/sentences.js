/** Sentences for moments, with what the viewer could know at that time. */

import { cardName } from "../cards.js";
import { escapeControl } from "../dom.js";
import { audit as texts } from "../texts/audit.js";
import { SEAT_GIVEN_UP, seatOf } from "../verify.js";
import { faceOf } from "./moments.js";
import { ALL_CARDS, knows } from "./visibility.js";

/** The name of a seat's player at a moment. */
export function playerAt(moment, seat) {
  const name = moment.seats.get(seat);
  return name === undefined ? texts.emptySeat(seat) : texts.player(escapeControl(name), seat);
}

/** The heading of a stack at a moment. */
export function titleOf(moment, stack) {
  const seat = seatOf(stack);
  if (seat !== null) return texts.hand(playerAt(moment, seat));
  return stack === "deck" ? texts.deck : texts.pile(stack.slice(5));
}

/** The sentence for moment `index` of a round, with the fault if the round ends with one. */
export function sentenceOf(round, index, viewer) {
  const moment = round.moments[index];
  const sentence = eventSentence(round, moment, round.moments[index - 1] ?? null, viewer);
  const broken = round.state === "broken" && index === round.moments.length - 1;
  return broken ? `${sentence} ${texts.moments.fault(round.fault)}` : sentence;
}

function eventSentence(round, moment, previous, viewer) {
  const { type, public: event, shuffle, swap } = moment;
  if (swap !== null) return swapSentence(shuffle, swap, viewer);
  const seated = SEAT_GIVEN_UP.includes(type) ? previous : moment; // when the seat had its player
  return texts.moments[type]({
    ...event,
    count: event.deck?.length,
    n: shuffle?.n,
    player: "seat" in event ? playerAt(seated, event.seat) : null,
    fromPlayer: ownerOf(moment, event.from),
    toPlayer: ownerOf(moment, event.to),
    card: "slot" in event && knows(moment, viewer, event.slot)
      ? texts.the(cardName(faceOf(round, event.slot))) : null,
    below: type === "CardDrawn" && previous.stacks.get(event.from).at(-1) !== event.slot,
  });
}

function swapSentence({ steps }, { step, i, j, cards }, viewer) {
  if (viewer !== ALL_CARDS) return texts.moments.hiddenSwap({ step, steps, i });
  const [card, other] = cards.map((code) => texts.the(cardName(code)));
  return texts.moments.CardsSwapped({ step, steps, i, j, card, other });
}

function ownerOf(moment, stack) {
  const seat = seatOf(stack ?? "");
  return seat === null ? null : playerAt(moment, seat);
}
