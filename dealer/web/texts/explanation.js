/** The three sentences of the audit page, and what they do not show. */

import { capital, counted, joined } from "./english.js";

const shufflesOf = (numbers) =>
  numbers.length === 1 ? `shuffle ${numbers[0]}` : `shuffles ${joined(numbers.map(String))}`;

export const explanation = {
  heading: (number) => (number === null ? "What this shows" : `What round ${number} shows`),
  titles: {
    promise: "Promised before.",
    given: "Put in.",
    why: "Why no one could choose.",
    notShown: "Not shown: that no one could choose.",
    none: "Nothing is shown.",
  },
  bot: (name) => `${name} (bot)`,

  promise: (number, when) =>
    `Before the first card of round ${number} moved, on ${when} by the house’s clock, the house ` +
    "logged a commitment to its secret random bytes: a fingerprint that no other bytes have.",
  given: (groups, byPlayers) => {
    const parts = groups.map(({ numbers, names, without }) => {
      const given = names.length === 0
        ? `${shufflesOf(numbers)} used random bytes of the house only`
        : `${shufflesOf(numbers)} used random bytes of ${joined(["the house", ...names])}`;
      return names.length > 0 && without.length > 0
        ? `${given}, and none of ${joined(without)}` : given;
    });
    const order = "; each player committed to theirs before anyone revealed any";
    return `${capital(parts.join("; "))}${byPlayers ? order : ""}.`;
  },
  why:
    "The swaps follow from all of these bytes together: if only one of these players drew theirs " +
    "at random and kept them secret until all had committed, no one could choose the order, not " +
    "even the house.",
  houseOnly:
    "The house alone put in random bytes, and could have tried many before it committed to some. " +
    "Shown is only that the cards were fixed before the deal.",
  partlyHouseOnly: (numbers) =>
    `Of ${shufflesOf(numbers)}, which used no player’s bytes, it is shown only that the cards ` +
    "were fixed before the deal.",

  open: (number, when) =>
    `Round ${number} is still open. On ${when} by its clock, the house committed to its secret; ` +
    "until it has revealed it, no swap and no hidden card of this round can be checked.",
  noShuffle: (number) =>
    `No shuffle was finished in round ${number}, so nothing about a random order can be shown.`,
  failed: (line) =>
    `A check failed, in line ${line}. As long as that is not explained, this bundle proves ` +
    "nothing in favour of the house.",

  voided: (numbers) =>
    `${capital(shufflesOf(numbers))} ${numbers.length === 1 ? "was" : "were"} voided, because a ` +
    "player did not reveal their bytes. So an order can be refused and another one drawn: that is " +
    "counted, and cannot be prevented.",
  reused: (times) =>
    `Random bytes that this log had revealed before were used again (${counted(times, "time")}): ` +
    "they were not secret.",
  unknown:
    "This page knows neither the table’s key nor a checkpoint from elsewhere. To someone who was " +
    "not there, a bundle shows only that the house’s account is consistent.",
};
