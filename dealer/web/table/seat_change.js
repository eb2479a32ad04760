/** Moving to another seat: as the player chooses, or as the host asks. */

import { table as texts } from "../texts.js";
import { ofPlayers } from "./actions.js";
import { choices, dialog } from "./dialogs.js";
import { offerTo } from "./history.js";
import { cardsIn, freeSeats, handOf, pilesOfSeat } from "./selectors.js";

/** Moving the player of this page to a free seat. */
function moveTo(to) {
  return ofPlayers(({ table }) => table.moveSeat(to), [withoutCards]);
}

/** @type {import("./actions.js").Condition} cards belong to their seat */
function withoutCards({ table }) {
  if (table.shuffling) return texts.disabled.shuffling;
  const { state, seat } = table;
  const cards = cardsIn(state, handOf(seat)).length > 0 ||
    (state.round !== null && pilesOfSeat(state, seat).length > 0);
  return cards ? texts.disabled.cardsHere : null;
}

/** Ask for a free seat; the action that moves the player of `seat` there, null if none was chosen. */
export async function changeOfSeat({ table }, seat) {
  const to = await dialog(texts.hosts.moveWhere, (close) => [
    choices(close, freeSeats(table.state).map((free) => (
      { label: texts.seat({ seat: free }), value: free }))),
  ]);
  if (to === null) return null;
  return seat === table.seat ? moveTo(to) : ofPlayers(() => table.moveSeat(to, { seat }));
}

/** Move when the host asks for it, as soon as that is possible. */
export function followOffers(page) {
  const { table } = page;
  let followed = 0; // version of the newest offer that was tried
  const follow = () => {
    const offer = offerTo(table);
    if (offer === null || offer.version <= followed) return;
    const free = freeSeats(table.state).includes(offer.to);
    if (!free || withoutCards({ table }) !== null || table.connection.state !== "connected") return;
    followed = offer.version;
    page.attempt(moveTo(offer.to));
  };
  for (const kind of ["changed", "connection"]) table.on(kind, follow);
  follow();
}
