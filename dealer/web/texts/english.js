/** English that all pages share: plurals, lists, capitals, and the names of cards. */

/** "1 card", "2 cards". */
export function counted(count, thing) {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

/** "Ada, Bob and Cleo". */
export function joined(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** The sentence with a capital first letter. */
export function capital(sentence) {
  return sentence[0].toUpperCase() + sentence.slice(1);
}

/** Names of cards. */
export const cards = {
  ranks: {
    A: "ace", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight",
    9: "nine", T: "ten", J: "jack", Q: "queen", K: "king",
  },
  suits: { s: "spades", h: "hearts", d: "diamonds", c: "clubs" },
  jokers: { 1: "joker", 2: "red joker" },
  faceDown: "face-down card",
  named: (rank, suit) => `${rank} of ${suit}`,
  ofDeck: (name, deck) => `${name}, deck ${deck}`,
};

/** The colour theme of the pages. */
export const theme = {
  label: "Colours",
  themes: { system: "As the system", light: "Light", dark: "Dark" },
};
