// The choice of a version, from the list that all versions in one folder share; and excerpts of
// found pages, which a browser may not read from files.

const root = document.documentElement.dataset.content_root;
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

function choice(versions) {
  const current = DOCUMENTATION_OPTIONS.VERSION;
  const select = document.createElement("select");
  select.ariaLabel = "Version";
  for (const version of versions) {
    select.add(new Option(version, version, version === current, version === current));
  }
  select.addEventListener("change", () => {
    location.href = new URL(`${root}../${select.value}/index.html`, location.href).href;
  });
  const box = document.createElement("div");
  box.className = "versions";
  box.append(select);
  return box;
}

const list = document.createElement("script");
list.src = `${root}../versions.js`;
list.addEventListener("load", () => {
  const brand = document.querySelector(".sidebar-brand");
  if (brand && globalThis.dealerVersions?.length) brand.after(choice(globalThis.dealerVersions));
});
document.head.append(list);
