/**
 * Drag and drop of cards, long presses and context menus, by mouse, pen or finger.
 *
 * A press on an element with `data-slot` or `data-stack` becomes a click, a drag onto an element with
 * `data-drop`, or, with a finger that stays where it is, a hold: the card is lifted, moving it drags
 * it, and letting it go opens its menu. Where the browser may scroll (`touch-action` in hand.css), it
 * ends a press that it takes for scrolling with `pointercancel`. A page loads this for a player; a
 * module of the page's state would be another one here, so all that it needs is given.
 */

const DRAG_SCROLL = new URL("./drag_scroll.js", import.meta.url).href;
const DRAG_DISTANCE_PX = 7; // from here on a press is a drag
const TOUCH_DISTANCE_PX = 10; // fingers are less steady
// A hold lifts the card, and only its release opens the menu, which would otherwise open under a
// finger that rests while its player thinks.
const HOLD_MS = 400;
const FLICK_DISTANCE_PX = 30; // upwards

/**
 * @typedef {object} Dragged
 * @property {string} from a stack
 * @property {number[]} slots cards of the player's hand, or of a spread pile, the lowest first
 * @property {number} count cards from the top of another stack
 * @property {boolean} trick they are a complete trick, which goes to its winner
 * @property {readonly import("../client.js").Card[]} cards those that move
 * @property {HTMLElement[]} pictures their elements
 *
 * @typedef {object} DragTarget
 * @property {(source: HTMLElement, picture: HTMLElement | null) => Dragged | null} pickUp the card
 *   that was pressed, if one was, and what lies on it
 * @property {(dragged: Dragged, to: string) => boolean} accepts
 * @property {(dragged: Dragged, to: string | null) => (string | null)[]} preview the codes of the
 *   cards as they will be seen in `to`, null for a back
 * @property {(codes: (string | null)[], touch: boolean) => import("./ghost.js").Ghost} ghost the
 *   picture that follows the pointer
 * @property {(dragged: Dragged, to: string | null, x: number) => void} over the pointer has moved
 * @property {(dragged: Dragged, to: string, x: number) => void} drop
 * @property {(dragged: Dragged) => void} flick upwards, without getting to a place of its own
 * @property {(source: HTMLElement) => void} menu a long press, a right click, or the menu key
 */
export class Dragging {
  /** @type {DragTarget} */
  #target;
  #area;
  #scroll = null; // loaded with the first drag
  #press = null;
  #ghost = null;
  #over = null;
  #ignoresClick = false;

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
    area.addEventListener("pointercancel", (event) => this.#cancel(event));
    area.addEventListener("lostpointercapture", (event) => {
      if (event.target === area) this.#cancel(event); // not when `area` takes it from a card
    });
    area.addEventListener("touchmove", (event) => this.#onTouchMove(event), { passive: false });
    area.addEventListener("touchend", (event) => this.#onTouchEnd(event), { passive: false });
    area.addEventListener("click", (event) => this.#click(event), { capture: true });
    area.addEventListener("contextmenu", (event) => this.#menu(event));
    area.addEventListener("dragstart", (event) => event.preventDefault());
    document.addEventListener("keydown", (event) => this.#onKey(event), { capture: true });
  }

  #down(event) {
    this.#ignoresClick = false;
    // Other fingers neither start nor end anything.
    if (this.#press !== null || !event.isPrimary || event.button !== 0) return;
    const source = sourceOf(event);
    if (source === null) return;
    const touch = event.pointerType !== "mouse";
    this.#press = {
      source, picture: event.target.closest(".card"), touch,
      x: event.clientX, y: event.clientY, id: event.pointerId, held: false,
      timer: touch ? setTimeout(() => this.#hold(), HOLD_MS) : null, dragged: null,
    };
  }

  #hold() {
    this.#press.held = true;
    this.#press.source.classList.add("held");
  }

  #move(event) {
    const press = this.#press;
    if (press === null || event.pointerId !== press.id) return;
    if (this.#ghost === null && !(isDrag(press, event) && this.#begin(press))) return;
    this.#ghost.moveTo(event.clientX, event.clientY);
    this.#hover(event.clientX, event.clientY);
    this.#scroll?.at(event.clientX, event.clientY);
    event.preventDefault();
  }

  #begin(press) {
    press.dragged = this.#target.pickUp(press.source, press.picture);
    if (press.dragged === null) {
      this.#end();
      return false;
    }
    if (this.#scroll === null) this.#loadScroll();
    clearTimeout(press.timer);
    press.source.classList.remove("held");
    this.#area.setPointerCapture(press.id);
    this.#ghost = this.#target.ghost(this.#target.preview(press.dragged, null), press.touch);
    for (const picture of press.dragged.pictures) picture.classList.add("lifted");
    for (const place of places()) {
      if (this.#accepts(place)) place.setAttribute("data-target", "");
    }
    document.documentElement.classList.add("dragging");
    return true;
  }

  #loadScroll() {
    import(DRAG_SCROLL).then(({ DragScroll }) => {
      this.#scroll ??= new DragScroll((x, y) => this.#hover(x, y));
    }, () => {}); // without: what is seen can be reached
  }

  #accepts(place) {
    return this.#target.accepts(this.#press.dragged, place.dataset.drop);
  }

  /** Mark what is below the pointer, and draw the cards as they will be seen there. */
  #hover(x, y) {
    const { dragged } = this.#press;
    /** @type {HTMLElement | null} */
    // Only stacks and players: a drop on the free felt by accident would show the card to all.
    const place = document.elementFromPoint(x, y)?.closest("[data-drop]") ?? null;
    const to = place !== null && this.#accepts(place) ? place.dataset.drop : null;
    this.#target.over(dragged, to, x);
    this.#ghost.draw(this.#target.preview(dragged, to));
    if (place !== this.#over) this.#over?.removeAttribute("data-over");
    place?.setAttribute("data-over", to === null ? "no" : "yes");
    this.#over = place;
  }

  #up(event) {
    if (this.#press === null || event.pointerId !== this.#press.id) return;
    const { dragged, held, source } = this.#press;
    const to = this.#over?.dataset.drop;
    const wasDrag = this.#ghost !== null;
    const nowhere = to === undefined || to === dragged?.from;
    const flicked = wasDrag && nowhere && isFlick(this.#press, event);
    this.#end();
    if (flicked) this.#target.flick(dragged);
    else if (wasDrag && to !== undefined) this.#target.drop(dragged, to, event.clientX);
    else if (!wasDrag && held) this.#target.menu(source);
  }

  #cancel(event) {
    if (event.pointerId === this.#press?.id) this.#end();
  }

  /** Scrolling must not begin while a card is held or dragged. */
  #onTouchMove(event) {
    if (event.cancelable && (this.#ghost !== null || this.#press?.held)) event.preventDefault();
  }

  /** No click follows a drag or a hold. */
  #onTouchEnd(event) {
    if (this.#ignoresClick && event.cancelable) event.preventDefault();
  }

  /** Ignore the click at the end of a drag; any other one is not this module's. */
  #click(event) {
    if (!this.#ignoresClick || event.detail === 0) return;
    this.#ignoresClick = false;
    event.stopPropagation();
    event.preventDefault();
  }

  /** The browser's own long press ends with the finger's release, as `#up` sees it. */
  #menu(event) {
    const source = sourceOf(event);
    if (source === null) return;
    event.preventDefault();
    if (this.#press?.touch) return;
    this.#end();
    this.#target.menu(source);
  }

  #onKey(event) {
    if (event.key !== "Escape" || this.#ghost === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.#end();
  }

  #end() {
    const press = this.#press;
    if (press === null) return;
    this.#press = null;
    this.#ignoresClick = this.#ghost !== null || press.held;
    clearTimeout(press.timer);
    press.source.classList.remove("held");
    this.#scroll?.stop();
    if (this.#ghost === null) return;
    for (const picture of press.dragged.pictures) picture.classList.remove("lifted");
    for (const place of places()) place.removeAttribute("data-target");
    this.#over?.removeAttribute("data-over");
    this.#target.over(press.dragged, null, 0);
    this.#ghost.remove();
    document.documentElement.classList.remove("dragging");
    this.#ghost = this.#over = null;
  }
}

/** Whether a press has moved far enough; along a hand that scrolls, a finger scrolls it. */
function isDrag({ source, touch, held, x, y }, event) {
  const [dx, dy] = [Math.abs(event.clientX - x), Math.abs(event.clientY - y)];
  if (Math.hypot(dx, dy) < (touch ? TOUCH_DISTANCE_PX : DRAG_DISTANCE_PX)) return false;
  return !touch || held || dy > dx || source.closest("[data-scrolls]") === null;
}

/** Whether a finger has moved up within the player's own place. */
function isFlick({ source, touch, x, y }, event) {
  const [dx, dy] = [Math.abs(event.clientX - x), y - event.clientY];
  const top = source.closest("#own")?.getBoundingClientRect().top ?? Infinity;
  return touch && dy > FLICK_DISTANCE_PX && dy > dx && event.clientY > top;
}

/** @returns {HTMLElement | null} */
function sourceOf(event) {
  return event.target.closest("[data-slot], [data-stack]");
}

/** @returns {NodeListOf<HTMLElement>} */
function places() {
  return document.querySelectorAll("[data-drop]");
}
