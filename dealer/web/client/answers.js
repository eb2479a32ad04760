/**
 * Answers to commands, compared with the verified events that the commands have made: no signed
 * head covers an answer, so a program gets of it only what the table's events say, too.
 */

/** The event that a command makes, and its members that are in the answer. */
const MADE = {
  "round.open": ["RoundOpened", ["round", "commitment"]],
  "round.close": ["RoundClosed", ["round", "secret"]],
  "deck.shuffle": ["ShuffleStarted", ["k"]],
  "pile.shuffle": ["ShuffleStarted", ["k"]],
};

const UNKNOWN = "??";

/**
 * What says how many cards a command moves: the taken seats, and the sizes of the stacks.
 *
 * @param {import("./event_verifier.js").EventVerifier} verifier
 */
export function placeOf({ players, round }) {
  const sizes = [...(round?.stacks ?? [])].map(([name, cards]) => [name, cards.length]);
  return { seats: new Set(players.keys()), sizes: new Map(/** @type {any} */ (sizes)) };
}

/** The place after further events. */
function follow({ seats, sizes }, events) {
  const add = (name, count) => sizes.set(name, (sizes.get(name) ?? 0) + count);
  for (const { type, public: event } of events) {
    if (type === "SeatTaken") seats.add(event.seat);
    else if (type === "SeatLeft" || type === "SeatVacated") seats.delete(event.seat);
    else if (type === "RoundOpened") sizes.clear();
    else if (type === "CardDrawn" || type === "CardMoved") {
      add(event.from, -1);
      if (type === "CardMoved") add(event.to, 1);
    }
  }
  return { seats, sizes };
}

/**
 * The answer with its values as the events show them; null if they contradict it, or are not those
 * of the command. A card that was not opened to this client is `??`.
 *
 * @param {any[]} made the events from `before` to the answer's version
 * @param {{ method: string, params: any, result: any, before: ReturnType<typeof placeOf>,
 *   seats: (number | null)[], faces: Map<string, string> }} command `seats` that the player had
 *   meanwhile; `faces` opened to the player
 */
export function confirmed(made, { method, params, result, before, seats, faces }) {
  if (method === "deck.deal") {
    const { each = 1, piles = [] } = params;
    const seated = params.seats?.length ?? follow(before, made).seats.size;
    const count = piles.reduce((sum, pile) => sum + pile.count, each * seated);
    const moved = made.filter(({ type }) => type !== "CardShown").slice(-count);
    const dealt = moved.length === count && moved.every((event) => event.public.from === "deck");
    return dealt && result.dealt === count ? result : null;
  }
  if (method === "deck.draw" || method === "pile.draw") {
    const start = made.length - result.slots.length;
    const source = method === "deck.draw" ? "deck" : `pile:${params.pile.replace(/^pile:/, "")}`;
    const count = params.all
      ? follow(before, made.slice(0, start)).sizes.get(source)
      : params.cards?.length ?? params.count ?? 1;
    const own = ({ type, public: { seat, from, slot } }, n) => type === "CardDrawn" &&
      seats.includes(seat) && from === source && slot === result.slots[n];
    const drawn = start < 0 ? [] : made.slice(start);
    if (drawn.length !== count || !drawn.every(own)) return null;
    const cards = drawn.map(({ public: { round, slot } }) => faces.get(`${round}/${slot}`));
    const same = cards.every((card, n) => card === undefined || card === result.cards[n]);
    return same ? { ...result, cards: cards.map((card) => card ?? UNKNOWN) } : null;
  }
  if (!Object.hasOwn(MADE, method)) return result;
  const [kind, members] = MADE[method];
  const event = made.findLast(({ type }) => type === kind)?.public ?? {};
  return members.every((name) => result[name] === event[name]) ? result : null;
}
