/**
 * Animates cards from their old to their new position. The page is drawn first; then copies of the
 * cards, which take no input, move over it, so that an animation never delays a player. There is
 * none for users who prefer reduced motion, or when very many cards have moved. A page loads this
 * after its first view; a module of the page's state would be another one here, so the pictures of
 * cards are given.
 */

const MAX_CARDS = 60;
const DURATION_MS = 300;
const STAGGER_MS = 45;
const MAX_STAGGER_MS = 900; // of all cards together

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/** The positions of the cards of `state` on the page; null if nothing is to be animated. */
export function positionsOf(state) {
  if (reducedMotion.matches || document.hidden || state?.round == null) return null;
  const stacks = new Map();
  for (const [name, cards] of Object.entries(state.round.stacks)) {
    for (const { slot, card } of cards) if (slot !== null) stacks.set(slot, { name, card });
  }
  const rects = new Map();
  for (const stack of findAll("[data-stack]")) rects.set(stack.dataset.stack, rectOf(stack));
  for (const option of findAll("#hand [data-slot]")) {
    rects.set(Number(option.dataset.slot), option.firstElementChild.getBoundingClientRect());
  }
  return { round: state.round.number, stacks, rects };
}

/**
 * Animate the cards that are in another stack than in `before`.
 *
 * @param {ReturnType<typeof positionsOf>} before
 * @param {import("../client.js").TableState} state
 * @param {string | null} own the stack of the player's own hand
 * @param {(code: string | null) => HTMLElement} picture of a card
 */
export function animateMoves(before, state, own, picture) {
  if (before === null || state.round?.number !== before.round) return;
  const moves = [];
  for (const [name, cards] of Object.entries(state.round.stacks)) {
    for (const { slot, card } of cards) {
      const old = before.stacks.get(slot);
      if (old === undefined || old.name === name) continue;
      const { rects } = before;
      const from = rects.get(old.name === own ? slot : old.name) ?? rects.get(old.name);
      moves.push({ slot, card: card ?? old.card, from, to: name });
    }
  }
  if (moves.length === 0 || moves.length > MAX_CARDS) return;
  const stagger = Math.min(STAGGER_MS, MAX_STAGGER_MS / moves.length);
  moves.sort((a, b) => b.slot - a.slot);
  launch(moves.map((move, index) => {
    const group = Math.floor(index * stagger / STAGGER_MS);
    const inHand = move.to === own ? find(`#hand [data-slot="${move.slot}"]`) : null;
    return { ...move, picture, target: inHand?.firstElementChild ?? null, delay: group * STAGGER_MS };
  }));
}

/**
 * Let the cards fly in groups: the pictures of a whole deal at once would hold up the page. Until its
 * picture has come, a card of the hand is not seen, and what is on it has no layout.
 */
function launch(flights) {
  for (const { target } of flights) target?.classList.add("coming");
  const begin = performance.now();
  const next = (now) => {
    const [{ delay }] = flights;
    if (delay <= now - begin) {
      const after = flights.findIndex((one) => one.delay > delay);
      const group = flights.splice(0, after < 0 ? flights.length : after);
      // Each change of the page between two measurements would cost a layout of all of it.
      const ends = group.map(endOf);
      group.forEach((flight, index) => fly(flight, ends[index]));
    }
    if (flights.length > 0) requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}

/** The chip of the player who wins a trick leaps for joy; the cards of the trick fly to it. */
export function celebrate(seat) {
  if (reducedMotion.matches || document.hidden) return;
  const chip = find(`.chip[data-seat="${seat}"]`);
  if (chip === null || chip.getAnimations().length > 0) return;
  chip.animate(
    [{ scale: 1 }, { scale: 1.45, boxShadow: "0 0 0 6px #f2c14e" }, { scale: 0.94 }, { scale: 1 }],
    { duration: 700, delay: DURATION_MS, easing: "ease-out" });
}

/** The rectangle to which a card is going; null if it is not on the page any more. */
function endOf({ target, to }) {
  const stack = find(`[data-stack="${CSS.escape(to)}"]`);
  const end = target?.getBoundingClientRect() ?? (stack && rectOf(stack));
  return end?.width > 0 ? end : null;
}

async function fly({ card, picture, from, target }, end) {
  if (from !== undefined && end !== null) {
    const flying = picture(card);
    flying.classList.add("flying");
    flying.style.setProperty("--card", `${end.width}px`);
    find("#overlay").append(flying);
    const at = (rect) =>
      `translate(${rect.left}px, ${rect.top}px) scale(${rect.width / end.width})`;
    await flying.animate([{ transform: at(from) }, { transform: at(end) }], {
      duration: DURATION_MS, easing: "cubic-bezier(0.2, 0.7, 0.2, 1)", fill: "both",
    }).finished;
    flying.remove();
  }
  target?.classList.remove("coming");
}

/** The position of a stack's top card, or of where it would be. */
function rectOf(stack) {
  const cards = stack.querySelectorAll(".card");
  if (cards.length > 0) return cards[cards.length - 1].getBoundingClientRect();
  const { left, top, width, height } = stack.getBoundingClientRect();
  const wide = Math.min(48, width);
  return new DOMRect(left + (width - wide) / 2, top + height / 2 - wide * 0.7, wide, wide * 1.4);
}

/** @returns {HTMLElement | null} */
const find = (selector) => document.querySelector(selector);

/** @returns {NodeListOf<HTMLElement>} */
const findAll = (selector) => document.querySelectorAll(selector);
