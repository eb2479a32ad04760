/** Cards follow the finger or the mouse, onto any place that has `data-drop`. */

/** Pixels after which a press is a drag. */
const FAR = 7;
/** Milliseconds in which the click that a browser makes of a drag's end comes. */
const CLICK_AFTER = 50;

/**
 * Lets cards in `area` be dragged. `game` says what is dragged (`lifted(element)` gives
 * `{ from, slots, pictures }` or null), whether it may be put there (`accepts(lifted, to)`), and
 * what comes of it (`drop(lifted, to, x)`); `tap(element)` is for presses that went nowhere.
 */
export class Dragging {
  #game;
  #area;
  #press = null;
  #ghost = null;
  #over = null;
  #dragged = -Infinity;

  constructor(area, game) {
    this.#area = area;
    this.#game = game;
    area.addEventListener("pointerdown", (event) => this.#down(event));
    area.addEventListener("pointermove", (event) => this.#move(event));
    area.addEventListener("pointerup", (event) => this.#up(event));
    area.addEventListener("pointercancel", () => this.#end());
    area.addEventListener("click", (event) => this.#click(event), { capture: true });
    area.addEventListener("dragstart", (event) => event.preventDefault());
  }

  #down(event) {
    if (!event.isPrimary || event.button !== 0) return;
    const source = event.target.closest("[data-slot], [data-drag]");
    this.#press = source && { source, x: event.clientX, y: event.clientY, id: event.pointerId };
  }

  #move(event) {
    const press = this.#press;
    if (press === null || event.pointerId !== press.id) return;
    const [dx, dy] = [event.clientX - press.x, event.clientY - press.y];
    if (this.#ghost === null) {
      if (Math.hypot(dx, dy) < FAR || !this.#begin(press)) return;
    }
    this.#ghost.style.translate = `${event.clientX}px ${event.clientY}px`;
    this.#hover(event.clientX, event.clientY);
    event.preventDefault();
  }

  #begin(press) {
    press.lifted = this.#game.lifted(press.source);
    if (press.lifted === null) {
      this.#press = null;
      return false;
    }
    this.#area.setPointerCapture(press.id);
    this.#ghost = document.createElement("div");
    this.#ghost.className = "ghost";
    this.#ghost.append(...press.lifted.pictures.map((picture) => picture.cloneNode(true)));
    document.querySelector("#flights").append(this.#ghost);
    for (const picture of press.lifted.pictures) picture.classList.add("lifted");
    document.documentElement.classList.add("dragging");
    return true;
  }

  #hover(x, y) {
    const place = document.elementFromPoint(x, y)?.closest("[data-drop]") ?? null;
    if (place === this.#over) return;
    this.#over?.removeAttribute("data-over");
    this.#over = place;
    if (place === null) return;
    const accepted = this.#game.accepts(this.#press.lifted, place.dataset.drop);
    place.setAttribute("data-over", accepted ? "yes" : "no");
  }

  #up(event) {
    const { lifted } = this.#press ?? {};
    const to = this.#over?.dataset.drop;
    const dragged = this.#ghost !== null;
    this.#end();
    if (!dragged) return;
    this.#dragged = performance.now();
    if (to !== undefined) this.#game.drop(lifted, to, event.clientX);
  }

  /** The click that ends a drag is none; any other on a card of the hand chooses it. */
  #click(event) {
    if (performance.now() - this.#dragged < CLICK_AFTER) {
      event.stopPropagation();
      event.preventDefault();
      return;
    }
    const option = event.target.closest("[data-slot]");
    if (option !== null) this.#game.tap(Number(option.dataset.slot));
  }

  #end() {
    for (const picture of this.#press?.lifted?.pictures ?? []) picture.classList.remove("lifted");
    this.#over?.removeAttribute("data-over");
    this.#ghost?.remove();
    document.documentElement.classList.remove("dragging");
    this.#press = this.#ghost = this.#over = null;
  }
}
