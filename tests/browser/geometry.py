"""Where things are on the table page: what overlaps, what is cut off, what is off the screen."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page
from playwright.async_api import TimeoutError as NeverTrue

SIZES = [(320, 568), (360, 640), (390, 844), (430, 932), (844, 390), (1280, 800)]

PROBLEMS = """() => {
  const problems = [];
  const all = (selector) => [...document.querySelectorAll(selector)].filter(
    (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0);
  const box = (one) => one.getBoundingClientRect();
  const overlap = (a, b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const inside = (a, b) =>
    a.left >= b.left - 1 && a.right <= b.right + 1 &&
    a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const screen = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  const label = (one) => one.getAttribute("aria-label") ?? one.textContent;
  const apart = (what, list) => list.forEach((a, index) => list.slice(index + 1).forEach((b) => {
    if (overlap(box(a), box(b))) problems.push(`${what} overlap: ${label(a)} / ${label(b)}`);
  }));

  // The own hand: on the screen, below nothing, with an index that can be read and pressed.
  const hand = document.querySelector("#hand");
  const [frame, tools] = [box(hand), box(document.querySelector("#tools"))];
  const scrolls = hand.scrollWidth > hand.clientWidth + 2;
  const arrow = getComputedStyle(hand.parentElement, "::after").opacity === "1";
  if (scrolls !== arrow) problems.push(`the hand scrolls: ${scrolls}, its arrow: ${arrow}`);
  if (!inside(frame, screen)) problems.push("the hand is off the screen");
  if (overlap(frame, tools)) problems.push("the toolbar covers the hand");
  const options = [...hand.children];
  options.forEach((option, index) => {
    const card = option.querySelector(".card");
    const [at, corner] = [box(card), box(card.querySelector(".corner"))];
    const name = card.getAttribute("aria-label");
    if (at.top < frame.top || at.bottom > frame.bottom + 1) problems.push(`${name} is cut off`);
    if (!scrolls && !inside(at, screen)) problems.push(`${name} is off the screen`);
    const next = options[index + 1];
    if (next && box(next).left - at.left < 23) problems.push(`${name} is too narrow to press`);
    if (next && corner.right > box(next).left + 1) problems.push(`the index of ${name} is covered`);
    const size = parseFloat(getComputedStyle(card.querySelector(".rank")).fontSize);
    if (size < 11) problems.push(`the index of ${name} has ${size} px`);
    const [x, y] = [corner.left + corner.width / 2, corner.top + corner.height / 2];
    if (x < frame.left + 30 || x > frame.right - 30) return;
    const top = document.elementFromPoint(x, y)?.closest("li");
    if (top !== option) problems.push(`something covers ${name}`);
  });

  // The seats, the piles and the own place are apart, and every name is within its seat.
  const seats = all("button.seat");
  const felt = box(document.querySelector("#felt"));
  apart("seats", seats);
  apart("piles", all("button.stack"));
  apart("names", all(".seat .name"));
  for (const seat of seats) {
    const name = seat.querySelector(".name");
    if (!inside(box(name), box(seat))) problems.push(`${label(seat)}: the name leaves the seat`);
    if (box(name).width < 20) problems.push(`${label(seat)}: the name cannot be read`);
    for (const pile of all("#middle button.stack")) {
      if (overlap(box(seat), box(pile))) problems.push(`${label(seat)} covers ${label(pile)}`);
    }
    const at = box(seat);
    if (at.left < felt.left - 1 || at.right > felt.right + 1) {
      problems.push(`${label(seat)} is off the felt`);
    }
  }

  // What does not fit has a cue, and scrolls above the own hand.
  const around = box(document.querySelector("#around"));
  if (around.bottom > box(document.querySelector("#own")).top + 1) {
    problems.push("the seats and piles go behind the own hand");
  }
  for (const scroller of [document.querySelector("#around"), document.querySelector("#middle")]) {
    const more = scroller.scrollHeight > scroller.clientHeight + 2;
    if (more && scroller.dataset.more === undefined) problems.push(`#${scroller.id} has no cue`);
    if (scroller.scrollWidth > scroller.clientWidth + 1) problems.push(`#${scroller.id} is wide`);
  }
  if (document.scrollingElement.scrollWidth > innerWidth) problems.push("the page is wide");
  return problems;
}"""

COVERED_CARDS = """(selector) => {
  const cover = document.querySelector(selector).getBoundingClientRect();
  if (cover.width === 0) return ["nothing is shown"];
  return [...document.querySelectorAll("#felt .card, #hand")].filter((one) => {
    const at = one.getBoundingClientRect();
    return at.left < cover.right && cover.left < at.right && at.top < cover.bottom - 1 &&
      cover.top < at.bottom - 1;
  }).map((one) => one.getAttribute("aria-label"));
}"""

DRAWN = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"""
"""Resolves when the page has been drawn, and its observers were called."""


SETTLE_MS = 5_000
"""After which what is wrong counts as the layout of the page; a busy machine draws late."""


async def resize(page: Page, size: tuple[int, int]) -> None:
    await page.set_viewport_size({"width": size[0], "height": size[1]})
    await page.wait_for_function("([w, h]) => innerWidth === w && innerHeight === h", arg=size)
    await page.evaluate(DRAWN)


async def problems(page: Page) -> list[str]:
    """What is wrong at the sizes of all phones, and of a desktop."""
    return await _found(page, PROBLEMS)


async def covered_cards(page: Page, selector: str) -> list[str]:
    """The cards that an element covers at these sizes."""
    return await _found(page, COVERED_CARDS, selector)


async def _found(page: Page, script: str, given: Any = None) -> list[str]:
    """What a script finds at each size, once the layout has followed the size."""
    found: list[str] = []
    for size in SIZES:
        await resize(page, size)
        try:
            await page.wait_for_function(
                f"(given) => ({script})(given).length === 0", arg=given, timeout=SETTLE_MS
            )
        except NeverTrue:
            found += [f"{size}: {one}" for one in await page.evaluate(script, given)]
    return found


NOT_SEEN = """(selector) => {
  const all = [...document.querySelectorAll(selector)].filter(
    (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0);
  const problems = all.length === 0 ? [`nothing is ${selector}`] : [];
  const letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
  for (const one of all) {
    const at = one.getBoundingClientRect();
    const name = `${selector} ${(one.getAttribute("aria-label") ?? one.textContent).trim()}`;
    const leaves = (box) => at.left < box.left - 1 || at.right > box.right + 1 ||
      at.top < box.top - 1 || at.bottom > box.bottom + 1;
    if (leaves({ left: 0, top: 0, right: innerWidth, bottom: innerHeight })) {
      problems.push(`${name} is past an edge of the screen`);
    }
    for (let up = one.parentElement; up !== null && up !== document.body; up = up.parentElement) {
      const fades = up.id !== "hand" && one.closest(".answers") === null;
      const fade = fades && up.dataset.more?.includes("end") ? 1.6 * letter : 0;
      const { left, right, top, bottom } = up.getBoundingClientRect();
      const box = { left, right, top, bottom: bottom - fade };
      if (getComputedStyle(up).overflow !== "visible" && leaves(box)) {
        problems.push(`${name} is cut by #${up.id}.${up.className}`);
      }
    }
    const { overflow } = getComputedStyle(one);
    const isLong = one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 2;
    if (overflow !== "visible" && isLong && one.localName !== "input") {
      problems.push(`the words of ${name} are cut`);
    }
    for (const x of [at.left + 5, (at.left + at.right) / 2, at.right - 5]) {
      for (const y of [at.top + 5, (at.top + at.bottom) / 2, at.bottom - 5]) {
        const top = document.elementFromPoint(x, y);
        if (top === null || one.contains(top) || top.contains(one)) continue;
        if (getComputedStyle(top).opacity !== "0") { // as that of the radio button of a tile
          problems.push(`${name} is covered by ${top.outerHTML.slice(0, 60)}`);
        }
      }
    }
  }
  return [...new Set(problems)];
}"""


async def expect_seen(page: Page, *selectors: str) -> None:
    """All of them are on the screen as a whole: not cut, not covered, with all of their words."""
    await page.evaluate(DRAWN)
    script = f"(all) => all.flatMap({NOT_SEEN})"
    try:
        await page.wait_for_function(
            f"(all) => ({script})(all).length === 0", arg=list(selectors), timeout=SETTLE_MS
        )
    except NeverTrue:
        found: list[str] = await page.evaluate(script, list(selectors))
        assert not found, "\n".join(found)
