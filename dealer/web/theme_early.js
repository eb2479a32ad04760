/**
 * Applies the colour theme of `theme.js` before the page is painted: a script, not a module, because
 * modules run after the first paint. Where storage is denied, `goTo` keeps values in the history.
 */
{
  const name = "dealer/page/theme";
  let theme;
  try {
    theme = localStorage.getItem(name);
  } catch {
    theme = new Map(history.state?.localStorage).get(name);
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
