/** Scrolls what is below a dragged card while the pointer is near an edge of it. */

const EDGE_PX = 28;
const STEP_PX = 6; // in each frame
const SCROLLS = /^(auto|scroll)$/;

export class DragScroll {
  #moved;
  #frame = null;
  #x = 0;
  #y = 0;

  /** @param {(x: number, y: number) => void} moved the page has moved below the pointer */
  constructor(moved) {
    this.#moved = moved;
  }

  /** The pointer is at this point of the window now. */
  at(x, y) {
    this.#x = x;
    this.#y = y;
    this.#frame ??= requestAnimationFrame(() => this.#step());
  }

  stop() {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
  }

  #step() {
    this.#frame = null;
    if (!this.#scroll()) return;
    this.#frame = requestAnimationFrame(() => this.#step());
    this.#moved(this.#x, this.#y);
  }

  /** Scroll one step; whether anything has moved. */
  #scroll() {
    const [x, y] = [this.#x, this.#y];
    let moved = false;
    for (let one = document.elementFromPoint(x, y); one !== null; one = one.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(one);
      const wide = SCROLLS.test(overflowX);
      const high = SCROLLS.test(overflowY);
      if (!wide && !high) continue;
      const { left, right, top, bottom } = one.getBoundingClientRect();
      const before = [one.scrollLeft, one.scrollTop];
      one.scrollBy({
        left: wide ? stepAt(x, left, right) : 0, top: high ? stepAt(y, top, bottom) : 0,
        behavior: "instant",
      });
      moved ||= one.scrollLeft !== before[0] || one.scrollTop !== before[1];
    }
    return moved;
  }
}

/** The step at a place between two edges: back, forward, or none. */
function stepAt(place, start, end) {
  if (place < start + EDGE_PX) return -STEP_PX;
  return place > end - EDGE_PX ? STEP_PX : 0;
}
