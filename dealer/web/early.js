/**
 * Sets the colour theme and the language before the page is painted: a script, not a module, because
 * modules run after the first paint. `theme.js` and `language.js` store what the reader chooses.
 *
 * The server lists the languages in the root element's `data-languages`, and in `data-texts` which
 * part of their files the page reads. Where storage is denied, `goTo` keeps values in the history.
 */
{
  const root = document.documentElement;
  const stored = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return new Map(history.state?.localStorage).get(name);
    }
  };
  const theme = stored("dealer/page/theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  const { languages = "", texts } = root.dataset;
  const offered = Object.fromEntries(languages.split(" ").map((one) => one.split(":")));
  const wanted = [stored("dealer/page/language"), ...navigator.languages];
  const found = wanted.map((one) => one?.split("-")[0]).find((one) => one in offered);
  if (found !== undefined) {
    root.lang = found;
    root.dir = offered[found];
  }
  if (texts !== undefined) {
    // The file is fetched with the modules, not after them; `texts.js` reads it.
    root.dataset.texts = texts.replace("*", root.lang);
    const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
    const link = document.createElement("link");
    Object.assign(link, { rel: "preload", as: "fetch", crossOrigin: "anonymous" });
    link.href = new URL(root.dataset.texts, src).href;
    document.head.append(link);
  }
}
