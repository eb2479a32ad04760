/** The questions that actions ask: which player, which pile, what to do with cards, are you sure. */

import { cardElement, cardSign } from "../cards.js";
import { element } from "../dom.js";
import { list, table as texts } from "../texts.js";
import { actionNamed, defaultFace, disabledReason, isVisible } from "./actions.js";
import { choices, dialog, form } from "./dialogs.js";
import { wordOf } from "./game.js";
import { askSaying } from "./notes.js";
import { plainName } from "./pile_names.js";
import {
  freePileName, nameAt, ownCards, passedTo, pileName, pilesShown,
} from "./selectors.js";
import { letterOf } from "./shortcuts.js";
import { pileTitle } from "./wording.js";

/** What can be done with cards of the hand, in the order of the menu. */
export const OF_CARDS = [
  "play", "playDown", "playTo", "discard", "give", "passTo", "show", "showTo", "putBack",
];
const MAX_NAMED = 4; // cards that a question names

/** Each question resolves to its answer; a dismissed one to null. */
export function questions(page) {
  const named = (slots) => {
    const signs = signsOf(page.table, slots);
    return signs.length < slots.length ? texts.someCards({ count: slots.length }) : list(signs);
  };

  const ask = {
    /** One of these seats; a single one is chosen without a dialog. */
    async seat(title, seats) {
      if (seats.length === 1) return seats[0];
      return await dialog(title, (close) => [
        element("div", { class: "choices", onkeydown: (event) => onDigit(event, seats, close) },
          ...seats.map((seat, index) => element("button", {
            type: "button", autofocus: index === 0, onclick: () => close(seat),
          }, nameAt(page.table, seat), seat < 10 ? element("kbd", {}, String(seat)) : ""))),
      ]);
    },

    /** Any seat that is taken, the player's own, too. */
    anySeat: (title) => ask.seat(title, page.table.state.seats.map(({ seat }) => seat)),

    /** A phrase or a reaction, as `{ kind, text }`. */
    saying: () => askSaying(),

    /** The one of these seats that gets cards of the hand; a single one must be confirmed. */
    async recipient(slots, seats) {
      const what = named(slots);
      if (seats.length > 1) return await ask.seat(texts.giveTo({ cards: what }), seats);
      const name = nameAt(page.table, seats[0]);
      const sentence = texts.confirm.give({ cards: what, name });
      return await ask.confirm(sentence, texts.actions.give) ? seats[0] : null;
    },

    /** The pile to put cards onto, as `{ pile, face }`. */
    async pile(title = texts.playOnto, label = texts.playThere) {
      const { state } = page.table;
      const targets = pilesShown(state).filter((stack) => passedTo(stack) === null);
      const name = element("input", {
        name: "pile", maxlength: 32, autocomplete: "off",
        placeholder: texts.newPile, "aria-label": texts.newPile,
      });
      const typed = () => name.value.trim();
      const chosenName = () => (typed() === "" ? freePileName(state) : plainName(typed()));
      const down = element("input", { type: "checkbox", name: "down" });
      const choose = (stack) => ({
        pile: pileName(stack), face: down.checked ? "down" : defaultFace(stack),
      });
      return await dialog(title, (close) => [
        element("label", { class: "choice" }, down, texts.faceDown),
        choices((stack) => close(choose(stack)), targets.map((stack) => (
          { label: pileTitle(pileName(stack)), value: stack }))),
        form(() => close({ pile: chosenName(), face: down.checked ? "down" : "up" }),
          { class: "line" }, name, element("button", { type: "submit" }, label)),
      ]);
    },

    /** What to do with cards of the hand, as `{ chosen, answer }`: an action, and what it asks. */
    async action(context) {
      const title = [pictureOf(page.table, context.slots), named(context.slots)];
      const chosen = await dialog(title, (close) => [
        choices(close, cardActions(page, context).map((one) => (
          { label: wordOf(one.name) ?? texts.cardActions[one.name], value: one,
            mark: one.mark })), { ranked: true }),
      ]);
      if (chosen === null) return null;
      const answer = await chosen.asks?.(context);
      return chosen.asks !== null && !answer ? null : { chosen, answer };
    },

    /** Whether the player confirms an action. */
    async confirm(sentence, label) {
      return await dialog(label, (close) => [
        element("p", {}, sentence),
        element("div", { class: "answers" },
          element("button", { type: "button", onclick: () => close(false) }, texts.cancel),
          element("button", {
            class: "danger", type: "button", autofocus: true, onclick: () => close(true),
          }, label)),
      ]) === true;
    },
  };
  return ask;
}

/** The actions of OF_CARDS that are possible now. */
export function cardActions({ table }, context) {
  return OF_CARDS.map(actionNamed).filter(
    (one) => isVisible(one, table) && disabledReason(one, context) === null);
}

/** The first few of these cards of the hand; null for a face that is not known. */
function firstOf(table, slots) {
  return ownCards(table).filter(({ slot }) => slots.includes(slot)).slice(0, MAX_NAMED)
    .map(({ card }) => card);
}

/** Their short forms, such as "7♠". */
function signsOf(table, slots) {
  return firstOf(table, slots).map((card) => (card === null ? texts.logLines.aCard : cardSign(card)));
}

function pictureOf(table, slots) {
  return element("span", { class: "hand-of-sheet", "aria-hidden": "true" },
    ...firstOf(table, slots).map(cardElement));
}

/** The keys 1 to 9 choose the seat of that number. */
function onDigit(event, seats, close) {
  const seat = Number(letterOf(event));
  if (!seats.includes(seat)) return;
  event.preventDefault();
  close(seat);
}
