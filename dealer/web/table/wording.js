/** Names of piles, and sentences that depend on what there is to say. */

import { cardName } from "../cards.js";
import { minuteOf } from "../clock.js";
import { safeText } from "../dom.js";
import { list, table as texts } from "../texts.js";
import { playersMissing, titleInGame } from "./game.js";
import { passedTo, wonBy } from "./selectors.js";

/** The title of a pile, by its name without `pile:`: the game's, or one for its plain name. */
export function pileTitle(name) {
  const title = titleInGame(name);
  if (title !== null) return title;
  const [passed, won] = [passedTo(`pile:${name}`), wonBy(`pile:${name}`)];
  if (passed !== null) return texts.passPile({ seat: passed });
  if (won !== null) return texts.wonPile({ seat: won });
  return Object.hasOwn(texts.piles, name) ? texts.piles[name] : safeText(name);
}

/** The label of a pile for screen readers; `seen` are the names of its face-up cards. */
export function pileLabel(name, cards, seen) {
  const pile = pileTitle(name);
  return seen.length === 0 ? texts.pileLabel({ pile, cards })
    : texts.pileLabelSeen({ pile, cards, seen });
}

/** The table's status: closed, between rounds, or in one. */
export function statusOf({ closed, round, shuffling }) {
  if (closed) return texts.status.closed;
  if (round === null) return texts.status.between;
  if (shuffling) return texts.status.shuffling;
  return texts.status.open({ round });
}

/** What a hand holds; `codes` are null for face-down cards. */
export function handContents(codes) {
  if (codes.length === 0) return texts.emptyHands;
  const seen = codes.filter((code) => code !== null);
  const count = codes.length - seen.length;
  const hidden = count > 0 ? [texts.faceDownCards({ count })] : [];
  return texts.handContents({ cards: list([...hidden, ...seen.map(cardName)]) });
}

/**
 * A seat's player: whether they are connected, and since when.
 *
 * @param {number} seat
 * @param {boolean} taken
 * @param {{ here: boolean, since: number | null } | undefined} presence
 */
export function seatDetails(seat, taken, presence) {
  const { free, unknown, here, hereSince, away, awaySince } = texts.seatDetails;
  if (!taken) return free({ seat });
  if (presence === undefined) return unknown({ seat });
  if (presence.since === null) return (presence.here ? here : away)({ seat });
  return (presence.here ? hereSince : awaySince)({ seat, time: minuteOf(presence.since) });
}

/** What the page says between rounds, null if a button says it; `mayOpen` if this player has one. */
export function betweenRounds(table, mayOpen) {
  const { closed, state: { rounds, seats } } = table;
  if (closed) return texts.tableClosed;
  const missing = playersMissing(table);
  if (missing !== null) return texts.disabled.fewPlayers(missing);
  if (mayOpen && rounds > 0) return null;
  if (mayOpen) return seats.length === 1 ? texts.mayOpenAlone : texts.mayOpenFirst;
  return rounds === 0 ? texts.firstRound : texts.nextRound;
}
