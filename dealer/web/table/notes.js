/** Phrases and reactions, which are notes with a meaning at this page. */

import { element } from "../dom.js";
import { table as texts } from "../texts.js";
import { choices, dialog } from "./dialogs.js";

/** Keys of the phrases, which each page shows in its reader's language. */
const PHRASES = [
  "good-game", "well-played", "thank-you", "your-turn", "one-moment", "sorry", "yes", "no",
];
const REACTIONS = ["👍", "👏", "😀", "😮", "🤔", "😢", "🎉", "❤️"];

/** A phrase or a reaction to say, as `{ kind, text }`; null if none was chosen. */
export async function askSaying() {
  return await dialog(texts.notes.say, (close) => [
    element("div", { class: "reactions", role: "group", "aria-label": texts.notes.reactions },
      ...REACTIONS.map((text, index) => element("button", {
        type: "button", autofocus: index === 0, onclick: () => close({ kind: "reaction", text }),
      }, text))),
    choices(close, PHRASES.map((text) => (
      { label: texts.phrases[text], value: { kind: "phrase", text } }))),
  ]);
}
