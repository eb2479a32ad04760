/**
 * Marks a scrolling element that has more at its start or end: `data-more` on it is "start", "end",
 * or both, in the direction of the text. The styles draw fades and arrows from it. One that scrolls
 * along the lines also gets `data-scrolls`, which changes what a swipe means (dragging.js).
 */

import { setAttribute } from "../dom.js";

const TOLERANCE_PX = 2;

/**
 * @param {HTMLElement} scroller
 * @param {"inline" | "block"} axis
 * @param {Element} content within it, whose children can change without it or its own
 * @returns {() => void} marks it again after its content has changed
 */
export function scrollCue(scroller, axis, content = scroller) {
  const mark = () => {
    const wide = axis === "inline";
    const size = wide ? scroller.clientWidth : scroller.clientHeight;
    const whole = wide ? scroller.scrollWidth : scroller.scrollHeight;
    // From right to left the positions are negative.
    const before = Math.abs(wide ? scroller.scrollLeft : scroller.scrollTop);
    const more = [
      before > TOLERANCE_PX && "start", whole - size - before > TOLERANCE_PX && "end",
    ].filter(Boolean);
    setAttribute(scroller, "data-more", more.length > 0 ? more.join(" ") : null);
    if (wide) setAttribute(scroller, "data-scrolls", more.length > 0);
  };
  scroller.addEventListener("scroll", mark, { passive: true });
  const observer = new ResizeObserver(mark);
  const update = () => {
    // Either may change.
    for (const one of [scroller, ...boxes(scroller), ...boxes(content)]) observer.observe(one);
    mark();
  };
  update();
  return update;
}

/** The children that have a box: an element with `display: contents` has only those of its own. */
function boxes(parent) {
  return [...parent.children].flatMap(
    (one) => (getComputedStyle(one).display === "contents" ? boxes(one) : [one]));
}
