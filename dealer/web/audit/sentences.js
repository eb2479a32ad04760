/** Sentences for moments, with what the viewer could know at that time. */

import { cardName } from "../cards.js";
import { safeText } from "../dom.js";
import { pileKind } from "../pile_kinds.js";
import { titleInGame } from "../table/game.js";
import { explanation, fill, audit as texts } from "../texts.js";
import { SEAT_GIVEN_UP, seatOf } from "../verify.js";
import { faceOf } from "./moments.js";
import { ALL_CARDS, knows } from "./visibility.js";

/** The name of a seat's player at a moment. */
export function playerAt(moment, seat) {
  const name = moment.seats.get(seat);
  if (name === undefined) return texts.emptySeat({ seat });
  const plain = safeText(name);
  const shown = moment.bots.has(seat) ? explanation.bot({ name: plain }) : plain;
  return texts.player({ name: shown, seat });
}

/** The heading of a stack at a moment; as in play, that of a hand is the player's name. */
export function titleOf(moment, stack) {
  const seat = seatOf(stack);
  if (seat !== null) {
    const name = moment.seats.get(seat);
    const isOne = [...moment.seats.values()].filter((one) => one === name).length === 1;
    return isOne && !moment.bots.has(seat) ? safeText(name) : playerAt(moment, seat);
  }
  return stack === "deck" ? texts.deck
    : titleInGame(plainName(stack)) ?? pileText(texts.pile, moment, stack);
}

/** A stack in a sentence about a moment. */
export function stackName(moment, stack) {
  const seat = seatOf(stack);
  if (seat !== null) return texts.handOf({ player: playerAt(moment, seat) });
  if (stack === "deck") return texts.theDeck;
  const title = titleInGame(plainName(stack));
  return title === null ? pileText(texts.thePile, moment, stack) : texts.titled({ title });
}

/** The name of a pile without `pile:`, as in a game file. */
const plainName = (stack) => stack.slice(5);

function pileText(text, moment, stack) {
  const { kind, seat } = pileKind(stack);
  const player = seat === null ? "" : playerAt(moment, seat);
  return text({ kind, player, name: safeText(plainName(stack)) });
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
  const player = "seat" in event ? playerAt(seated, event.seat) : null;
  if (type === "NoteAdded") return noteSentence(event, player, moment);
  return fill(texts.moments[keyOf(type, event, previous)], {
    ...event,
    player,
    reason: safeText(event.reason ?? ""),
    count: event.deck?.length,
    n: shuffle?.n,
    number: event.k + 1,
    place: event.at + 1,
    stack: "stack" in event ? stackName(moment, event.stack) : null,
    from: "from" in event ? stackName(moment, event.from) : null,
    to: "to" in event ? stackName(moment, event.to) : null,
    card: "slot" in event && knows(moment, viewer, event.slot)
      ? texts.the({ card: cardName(faceOf(round, event.slot)) }) : texts.aCard,
  });
}

/** The message of an event. */
function keyOf(type, event, previous) {
  if (type === "SeatVacated" && event.reason) return "SeatVacatedFor";
  if (type === "CardDrawn" && previous.stacks.get(event.from).at(-1) !== event.slot) {
    return "drawnBelow";
  }
  return type;
}

function noteSentence({ seat, kind, text }, player, moment) {
  const who = seat === 0 ? texts.theHost : player;
  const { NoteAdded, TookBack, TookBackRange } = texts.moments;
  if (kind === "seat_move" || kind === "seat_offer") {
    const [from, to] = text.split("-");
    const named = { player: playerAt(moment, Number(from)), to: safeText(to ?? "") };
    return texts.moments[kind === "seat_move" ? "SeatMoves" : "SeatOffered"](named);
  }
  if (kind === "turn" && moment.seats.has(Number(text))) {
    return texts.moments.Turn({ player: playerAt(moment, Number(text)) });
  }
  if (kind === "readmit") return texts.moments.Readmitted({ who, name: safeText(text) });
  if (kind !== "take_back") {
    return NoteAdded({ who, kind: safeText(kind), text: safeText(text) });
  }
  const [first, last] = text.split("-");
  return last === undefined ? TookBack({ who, text }) : TookBackRange({ who, first, last });
}

function swapSentence({ steps }, { step, i, j, cards }, viewer) {
  const { CardsSwapped, hiddenSwap, staysSwapped } = texts.moments;
  const values = { number: step + 1, steps, i: i + 1, j: j + 1 };
  if (viewer !== ALL_CARDS) return hiddenSwap(values);
  const [card, other] = cards.map((code) => texts.the({ card: cardName(code) }));
  return (i === j ? staysSwapped : CardsSwapped)({ ...values, card, other });
}
