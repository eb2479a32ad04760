/** Texts of packs and games: a string, or strings by language. */

/** @typedef {string | Record<string, string>} LocalisedText */

/**
 * The text in the language of the page, else in English, else in its first language.
 *
 * @param {LocalisedText} text
 */
export function localised(text) {
  if (typeof text === "string") return text;
  const { lang } = document.documentElement;
  return text[lang] ?? text[lang.split("-")[0]] ?? text.en ?? Object.values(text)[0];
}
