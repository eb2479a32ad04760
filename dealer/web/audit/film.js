/**
 * The player: which of a row of moments is shown, and how it goes on from there.
 *
 * It knows nothing of what a moment is; `show(index, flight)` draws one, `flight` being the
 * milliseconds that cards may take to fly there from the moment beside it.
 */

const FLIGHT_MS = 450;
const FLIGHT_LEAST_MS = 60;
const AT_ONCE = 10; // moments that the page keys skip

export class Film {
  index = 0;
  count = 0;
  speed = 3; // moments a second
  #show;
  #timer = null;
  #frame = null;
  #drawn = -1;

  constructor(show) {
    this.#show = show;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  get playing() {
    return this.#timer !== null;
  }

  /** Another row of moments, from one of them on. */
  open(count, index) {
    this.pause();
    this.count = count;
    this.#drawn = -1;
    this.go(index);
  }

  /** Show a moment; drawn is only the last one that was asked for before the next picture. */
  go(index) {
    this.index = Math.min(Math.max(index, 0), Math.max(this.count - 1, 0));
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      if (this.count === 0) return;
      const beside = Math.abs(this.index - this.#drawn) === 1 && this.#drawn >= 0;
      this.#drawn = this.index;
      this.#show(this.index, beside ? this.#flight() : 0);
    });
  }

  step(by) {
    this.pause();
    this.go(this.index + by);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /** Go on to the end; from the end, once more from the start. */
  play() {
    if (this.count === 0) return;
    if (this.index >= this.count - 1) this.index = 0;
    this.#timer = -1;
    this.go(this.index);
    this.#wait();
  }

  pause() {
    if (!this.playing) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.go(this.index);
  }

  #wait() {
    this.#timer = setTimeout(() => {
      if (this.index >= this.count - 1) return this.pause();
      this.go(this.index + 1);
      this.#wait();
    }, 1000 / this.speed);
  }

  #flight() {
    if (this.calm.matches) return 0;
    const flight = this.playing ? Math.min(FLIGHT_MS, 800 / this.speed) : FLIGHT_MS;
    return flight < FLIGHT_LEAST_MS ? 0 : flight;
  }
}

/** What a key asks of the film: true if it was one of its keys. */
export function keyPressed(film, { key, target, altKey, ctrlKey, metaKey }) {
  if (altKey || ctrlKey || metaKey || film.count === 0) return false;
  const { tagName, type } = target;
  const written = ["TEXTAREA", "SELECT"].includes(tagName);
  const filled = tagName === "INPUT" && type !== "range";
  if (written || filled || target.closest?.("[data-scrolls]")) return false;
  if (key === " ") {
    if (["BUTTON", "A", "SUMMARY"].includes(tagName)) return false;
    film.toggle();
    return true;
  }
  const steps = {
    ArrowLeft: -1, ArrowRight: 1, PageUp: -AT_ONCE, PageDown: AT_ONCE,
    Home: -film.count, End: film.count,
  };
  if (!(key in steps)) return false;
  film.step(steps[key]);
  return true;
}
