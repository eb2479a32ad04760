/** The menu of a seat: its player and cards, marks for the player, and what the host may do. */

import { minuteOf } from "../clock.js";
import { element, field, safeText } from "../dom.js";
import { table as texts } from "../texts.js";
import { actionForMove, noting, ofPlayers, trickTo } from "./actions.js";
import { choices, dialog, form } from "./dialogs.js";
import { showInvitation } from "./links.js";
import { menu } from "./menu.js";
import { formerPlayers, removedPlayers } from "./history.js";
import { askCounter, askNumber } from "./numbers.js";
import { changeOfSeat } from "./seat_change.js";
import { cardsShown, freeSeats, handOf, isAllowed, isTrick, nameAt } from "./selectors.js";
import { handContents, seatDetails } from "./wording.js";

const CLOCK_MAX = 99_999; // seconds

/** Show the menu of any seat, also of the player's own, and carry out what is chosen. */
export async function openSeat(page, seat) {
  const { table, count } = page;
  const cards = cardsShown(table.state, handOf(seat));
  const taken = table.seats.has(seat);
  const isHost = table.state.hostSeat === seat;
  await menu(page, nameAt(table, seat), [
    element("p", { class: "muted" },
      seatDetails(seat, taken, table.presence.get(seat)),
      isHost ? ` ${texts.hosts.isHost}` : ""),
    element("p", {}, handContents(cards.map(({ card }) => card))),
  ], [
    ...cardOffers(page, seat, { taken, cards, count }),
    ...markOffers(table, seat, taken),
    ...hostOffers(page, seat, taken),
  ], { count });
}

function cardOffers({ table }, seat, { taken, cards, count }) {
  const labels = texts.cardMenu;
  return [
    {
      possible: taken && seat !== table.seat && isAllowed(table, "deal"),
      label: labels.dealTo({ count }),
      action: () => actionForMove(table, { from: "deck", to: handOf(seat), count }),
    },
    {
      possible: table.round !== null && isAllowed(table, "collect") && cards.length > 0,
      label: labels.collectHand,
      action: () => actionForMove(table, { from: handOf(seat), to: "pile:discard" }),
    },
    {
      possible: taken && isAllowed(table, "pile") && isTrick(table),
      label: texts.tricks.to({ name: nameAt(table, seat) }), action: () => trickTo(seat),
    },
  ];
}

function markOffers(table, seat, taken) {
  const possible = taken && isAllowed(table, "annotate");
  const [name, own] = [nameAt(table, seat), seat === table.seat];
  const { turn, dealerButton, scores } = table.markers;
  const labels = texts.notes;
  const score = own ? labels.ownScore : labels.scoreOf({ name });
  return [
    {
      possible: possible && turn !== seat, label: own ? labels.takeTurn : labels.turnTo({ name }),
      action: () => noting("turn", String(seat)),
    },
    {
      possible: possible && dealerButton !== seat,
      label: own ? labels.takeButton : labels.buttonTo({ name }),
      action: () => noting("dealer_button", String(seat)),
    },
    {
      possible, label: score,
      action: async () => {
        const answer = await askNumber(score, scores.get(seat) ?? 0);
        return answer && noting("score", `${seat}:${answer.number}`);
      },
    },
  ];
}

function hostOffers(page, seat, taken) {
  const { table } = page;
  const former = formerPlayers(table).get(seat);
  const [name, own] = [nameAt(table, seat), seat === table.seat];
  const { here = true, since = null } = table.presence.get(seat) ?? {};
  const labels = texts.hosts;
  const others = table.seats.size - 1;
  const mayFree = !table.host && table.seat !== null && !own && !here;
  return [
    {
      possible: table.host && taken && table.state.hostSeat !== seat && !(own && others === 0),
      label: own ? labels.keepHost : labels.makeHost({ name }),
      action: () => ofPlayers(() => table.transferHost(seat)),
    },
    {
      possible: !taken,
      label: former === undefined ? labels.invite : labels.inviteAgain({ name: former }),
      action: () => showInvitation(page, { place: seat, name: former }),
    },
    ...[...removedPlayers(table)].map((removed) => ({
      possible: table.host && !taken, label: labels.readmit({ name: safeText(removed) }),
      action: () => noting("readmit", removed),
    })),
    {
      possible: taken && (own ? isAllowed(table, "move_seat") : table.host)
        && freeSeats(table.state).length > 0,
      label: own ? labels.moveSelf : labels.move({ name }),
      action: () => changeOfSeat(page, seat),
    },
    {
      possible: table.host && taken && !own, label: labels.remove({ name }), mark: "final",
      action: async () => {
        const answer = await askReason(name);
        return answer && ofPlayers(() => table.vacate(seat, answer.reason));
      },
    },
    {
      possible: taken && mayFree, mark: "final",
      label: since === null ? labels.free : labels.freeSince({ time: minuteOf(since) }),
      action: async () => {
        const sure = await page.ask.confirm(labels.confirmFree({ name }), labels.freeTitle);
        return sure ? ofPlayers(() => table.vacate(seat)) : null;
      },
    },
  ];
}

/** Whether the host removes a player, as `{ reason }`; null if not. */
async function askReason(name) {
  const labels = texts.hosts;
  const reason = element("input", { maxlength: 80, autocomplete: "off" });
  return await dialog(labels.removeTitle({ name }), (close) => [
    element("p", {}, labels.confirmRemove),
    form(() => close({ reason: reason.value.trim() }), {},
      field(labels.reason, reason),
      element("div", { class: "answers" },
        element("button", { type: "button", onclick: () => close() }, texts.cancel),
        element("button", { class: "danger", type: "submit" }, labels.removeNow))),
  ]);
}

/** The list of all seats that are taken; the menu of the chosen one follows. */
export async function openPlayers(page) {
  const seats = page.table.state.seats.map(({ seat }) => seat);
  const chosen = await dialog(texts.hosts.players, (close) => [
    choices(close, seats.map((seat) => ({ label: describe(page.table, seat), value: seat }))),
  ]);
  if (chosen !== null) await openSeat(page, chosen);
}

/** A player with their marks: "Ada · host · turn · 12". */
function describe(table, seat) {
  const { turn, dealerButton, scores } = table.markers;
  const marks = texts.notes;
  return [
    nameAt(table, seat),
    table.state.hostSeat === seat ? marks.host : null,
    turn === seat ? marks.turn : null,
    dealerButton === seat ? marks.button : null,
    scores.has(seat) ? String(scores.get(seat)) : null,
  ].filter((part) => part !== null).join(" · ");
}

/** Ask for a counter's name and value, and note them. */
export async function setCounter(page) {
  const answer = await askCounter(page.table.markers.counters);
  if (answer !== null) await page.attempt(noting("counter", `${answer.name}:${answer.number}`));
}

/** Ask how many seconds a turn lasts, and note that; 0 is no clock. */
export async function setClock(page) {
  const { clock } = page.table.markers;
  const answer = await askNumber(texts.notes.clockSeconds, clock, { min: 0, max: CLOCK_MAX });
  if (answer !== null) await page.attempt(noting("clock", String(answer.number)));
}
