/** The sentences of the game log about seats and their players. */

import { safeText } from "../dom.js";
import { number, table as texts } from "../texts.js";
import { phraseOf } from "./selectors.js";

const lines = texts.logLines;
const AWAY = /^away for ([0-9,]+) minutes?$/;

/**
 * The sentence of an event about a seat; undefined for other events.
 *
 * @param {{ type: string, public: any }} event
 * @param {{ own: boolean, name: string }} player whether it is the reader, and the name
 * @returns {string | undefined}
 */
export function seatSentence({ type, public: data }, { own, name }) {
  return {
    SeatTaken: () => (own ? lines.youSit : lines.sits)({
      name: data.bot ? texts.bot({ name }) : name, seat: data.seat,
    }),
    SeatLeft: () => (own ? lines.youLeft : lines.left({ name })),
    SeatVacated: () => removed(own ? null : name, reasonOf(data)),
    HostTransferred: () => (own ? lines.youAreHost : lines.isHost({ name })),
  }[type]?.();
}

/** The sentence of a move to another seat, or of the host's asking for it. */
export function changeSentence(kind, to, { own, name }) {
  const [yours, others] = kind === "seat_move"
    ? [lines.youMoveSeat, lines.movesSeat] : [lines.youAreAskedToMove, lines.isAskedToMove];
  return (own ? yours : others)({ name, seat: to });
}

/**
 * The sentence of a note that is a marker: of a seat, whose player it names, or of its author.
 *
 * @param {{ kind: string, text: string, value: any }} marker
 * @param {{ own: boolean, name: string }} player
 */
export function markerSentence({ kind, text, value }, { own, name }) {
  return {
    turn: () => (own ? lines.yourTurn : lines.turn({ name })),
    clock: () => (value === 0 ? lines.noClock : lines.clock({ seconds: value })),
    dealer_button: () => (own ? lines.yourButton : lines.button({ name })),
    score: () => (own ? lines.yourScore : lines.score)({ name, score: number(value) }),
    counter: () => lines.counter({ name: safeText(value[0]), value: number(value[1]) }),
    phrase: () => lines.note({ name, text: phraseOf(text) }),
    reaction: () => lines.note({ name, text: safeText(text) }),
  }[kind]();
}

/** Why a player was removed: in the host’s own words; those of the server are translated. */
function reasonOf({ by, reason }) {
  const away = by === "service" ? AWAY.exec(reason) : null;
  if (away === null) return safeText(reason);
  return lines.awayFor({ count: Number(away[1].replaceAll(",", "")) });
}

/** `name` is null for the reader, `reason` may be empty. */
function removed(name, reason) {
  if (name === null) {
    return reason ? lines.youWereRemovedFor({ reason }) : lines.youWereRemoved;
  }
  return reason ? lines.removedFor({ name, reason }) : lines.removed({ name });
}
