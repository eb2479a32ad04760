/** The control of a replay: which of a row of moments is shown, and how it advances. */

const FLIGHT_MS = 450;
const MIN_FLIGHT_MS = 60;
const PAGE = 10; // moments that the page keys skip

export class ReplayControl {
  index = 0;
  count = 0;
  speed = 3; // moments per second
  #show;
  #timer = null;
  #frame = null;
  #drawn = -1;

  /**
   * @param {(index: number, flight: number) => void} show draws a moment; `flight` is the duration,
   *   in ms, of the animation from the moment beside it, 0 for none
   */
  constructor(show) {
    this.#show = show;
    this.reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  }

  get playing() {
    return this.#timer !== null;
  }

  /** Replace the row of moments, and show one of it. */
  open(count, index) {
    this.pause();
    this.count = count;
    this.#drawn = -1;
    this.go(index);
  }

  /** Show a moment. Of several calls before the next frame only the last is drawn. */
  go(index) {
    this.index = Math.min(Math.max(index, 0), Math.max(this.count - 1, 0));
    if (this.#frame !== null) return;
    this.#frame = requestAnimationFrame(() => {
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

  /** Play to the end; at the end, start again from the beginning. */
  play() {
    if (this.count === 0) return;
    if (this.index >= this.count - 1) this.index = 0;
    this.#timer = -1;
    this.go(this.index);
    this.#advance();
  }

  pause() {
    if (!this.playing) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.go(this.index);
  }

  #advance() {
    this.#timer = setTimeout(() => {
      if (this.index >= this.count - 1) {
        this.pause();
        return;
      }
      this.go(this.index + 1);
      this.#advance();
    }, 1000 / this.speed);
  }

  #flight() {
    if (this.reducedMotion.matches) return 0;
    const flight = this.playing ? Math.min(FLIGHT_MS, 800 / this.speed) : FLIGHT_MS;
    return flight < MIN_FLIGHT_MS ? 0 : flight;
  }
}

/** Handle a key; false if it is not one of the control's keys. */
export function onKeyDown(control, { key, target, altKey, ctrlKey, metaKey }) {
  if (altKey || ctrlKey || metaKey || control.count === 0) return false;
  const { tagName, type } = target;
  const field = ["TEXTAREA", "SELECT"].includes(tagName);
  const input = tagName === "INPUT" && type !== "range";
  if (field || input || target.closest?.("[data-scrolls]")) return false;
  if (key === " ") {
    if (["BUTTON", "A", "SUMMARY"].includes(tagName)) return false;
    control.toggle();
    return true;
  }
  const steps = {
    ArrowLeft: -1, ArrowRight: 1, PageUp: -PAGE, PageDown: PAGE,
    Home: -control.count, End: control.count,
  };
  if (!(key in steps)) return false;
  control.step(steps[key]);
  return true;
}
