/** A moment in words, as who looks could have told it then. */

import { cardName } from "../cards.js";
import { harmless } from "../make.js";
import { audit as texts } from "../texts/audit.js";
import { seatOf } from "../verify.js";
import { faceOf } from "./story.js";
import { ABOVE, knows } from "./views.js";

/** Who sits on a seat at a moment. */
export function personAt(moment, seat) {
  const name = moment.seats.get(seat);
  return name === undefined ? texts.emptySeat(seat) : texts.player(harmless(name), seat);
}

/** What a stack is called at a moment. */
export function titleOf(moment, stack) {
  const seat = seatOf(stack);
  if (seat !== null) return texts.hand(personAt(moment, seat));
  return stack === "deck" ? texts.deck : texts.pile(stack.slice(5));
}

/** The sentence for moment `index` of a round, and the fault where the round ends with one. */
export function sentenceOf(round, index, viewer) {
  const moment = round.moments[index];
  const sentence = plain(round, moment, round.moments[index - 1] ?? null, viewer);
  const broken = round.state === "broken" && index === round.moments.length - 1;
  return broken ? `${sentence} ${texts.moments.fault(round.fault)}` : sentence;
}

function plain(round, moment, previous, viewer) {
  const { type, public: event, shuffle, swap } = moment;
  if (swap !== null) return ofSwap(shuffle, swap, viewer);
  const sitting = type === "SeatLeft" ? previous : moment; // who goes has a name before
  return texts.moments[type]({
    ...event,
    count: event.deck?.length,
    n: shuffle?.n,
    who: "seat" in event ? personAt(sitting, event.seat) : null,
    fromWho: ownerOf(moment, event.from),
    toWho: ownerOf(moment, event.to),
    card: "slot" in event && knows(moment, viewer, event.slot)
      ? texts.the(cardName(faceOf(round, event.slot))) : null,
    below: type === "CardDrawn" && previous.stacks.get(event.from).at(-1) !== event.slot,
  });
}

function ofSwap({ steps }, { step, i, j, cards }, viewer) {
  if (viewer !== ABOVE) return texts.moments.hiddenSwap({ step, steps, i });
  const [card, other] = cards.map((code) => texts.the(cardName(code)));
  return texts.moments.CardsSwapped({ step, steps, i, j, card, other });
}

function ownerOf(moment, stack) {
  const seat = seatOf(stack ?? "");
  return seat === null ? null : personAt(moment, seat);
}
