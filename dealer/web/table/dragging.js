/** Drag and drop of cards, by mouse or touch, onto any element that has `data-drop`. */

const DRAG_DISTANCE_PX = 7; // from here on a press is a drag
const CLICK_AFTER_MS = 50; // in which the browser's click at the end of a drag comes

/**
 * @typedef {{ from: string, slots: number[], pictures: HTMLElement[] }} Dragged
 * @typedef {object} DragTarget
 * @property {(source: HTMLElement) => Dragged | null} pickUp
 * @property {(dragged: Dragged, to: string) => boolean} accepts
 * @property {(dragged: Dragged, to: string, x: number) => void} drop
 * @property {(slot: number) => void} tap a card of the hand was clicked
 */
export class Dragging {
  /** @type {DragTarget} */
  #target;
  #area;
  #press = null;
  #ghost = null;
  #over = null;
  #endedAt = -Infinity;

  /**
   * @param {HTMLElement} area
   * @param {DragTarget} target
   */
  constructor(area, target) {
    this.#area = area;
    this.#target = target;
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
      if (Math.hypot(dx, dy) < DRAG_DISTANCE_PX || !this.#begin(press)) return;
    }
    this.#ghost.style.translate = `${event.clientX}px ${event.clientY}px`;
    this.#hover(event.clientX, event.clientY);
    event.preventDefault();
  }

  #begin(press) {
    press.dragged = this.#target.pickUp(press.source);
    if (press.dragged === null) {
      this.#press = null;
      return false;
    }
    this.#area.setPointerCapture(press.id);
    this.#ghost = document.createElement("div");
    this.#ghost.className = "ghost";
    this.#ghost.append(...press.dragged.pictures.map((picture) => picture.cloneNode(true)));
    document.querySelector("#overlay").append(this.#ghost);
    for (const picture of press.dragged.pictures) picture.classList.add("lifted");
    document.documentElement.classList.add("dragging");
    return true;
  }

  #hover(x, y) {
    /** @type {HTMLElement | null} */
    const place = document.elementFromPoint(x, y)?.closest("[data-drop]") ?? null;
    if (place === this.#over) return;
    this.#over?.removeAttribute("data-over");
    this.#over = place;
    if (place === null) return;
    const accepted = this.#target.accepts(this.#press.dragged, place.dataset.drop);
    place.setAttribute("data-over", accepted ? "yes" : "no");
  }

  #up(event) {
    const { dragged } = this.#press ?? {};
    const to = this.#over?.dataset.drop;
    const wasDrag = this.#ghost !== null;
    this.#end();
    if (!wasDrag) return;
    this.#endedAt = performance.now();
    if (to !== undefined) this.#target.drop(dragged, to, event.clientX);
  }

  /** Ignore the click at the end of a drag; any other click on a card of the hand selects it. */
  #click(event) {
    if (performance.now() - this.#endedAt < CLICK_AFTER_MS) {
      event.stopPropagation();
      event.preventDefault();
      return;
    }
    const option = event.target.closest("[data-slot]");
    if (option !== null) this.#target.tap(Number(option.dataset.slot));
  }

  #end() {
    for (const picture of this.#press?.dragged?.pictures ?? []) picture.classList.remove("lifted");
    this.#over?.removeAttribute("data-over");
    this.#ghost?.remove();
    document.documentElement.classList.remove("dragging");
    this.#press = this.#ghost = this.#over = null;
  }
}
