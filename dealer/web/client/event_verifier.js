/**
 * Verifies every event of a table as it arrives: it becomes a leaf of the client's own Merkle tree,
 * it must be one that can follow the events before it (the rules are those of verify.js), and each
 * card that is shown must open the commitment that was published before it was dealt.
 *
 * A card of the ledger is { face, slot, commitment, reached, id }. Before its stack was first
 * sealed its face is public and its id is −1 − index in the opening deck; then its id is its slot.
 */

import {
  CHECKPOINT_TYPES, INSECURE_RULE, PRACTICE_RULE, RuleViolation, SEAT_GIVEN_UP, applyEvent, cardIn,
  checkLeaf, isBytes32, leafHash, leafText, newLedger, partOf, schemaOf, slotCommitment, unhex,
} from "../verify.js";
import {
  ConfigurationError, DealerError, HouseCheated, MissingEvents, accusationFor, accuse,
} from "./errors.js";
import { replayRound } from "./round_replay.js";
import { readSnapshot } from "./snapshot.js";
import { VerifiedLog } from "./verified_log.js";

/** @typedef {import("../client.js").Evidence} Evidence */
/** @typedef {{ version: number, state: any, edge: string[], note: string }} Snapshot */

const utf8 = new TextEncoder();
const TOO_NEW = "The server sends events that this client does not know: use a newer client.";

export class EventVerifier {
  /** @type {number | null} the viewer's own */
  seat = null;
  /** Whether events of the newest round were not sent to this client. */
  startMissed = false;
  at = 0;
  origin = "";
  /** @type {Record<string, any>} */
  rules = {};
  /** @type {Map<number, Omit<import("../client.js").Seat, "seat">>} by seat */
  players = new Map();
  /** @type {number | null} seat of the player whom the host made host */
  hostSeat = null;
  rounds = 0; // opened so far
  /** @type {Set<string>} digests that came as leaves of the open round */
  digests = new Set();
  /** @type {Map<number, "players" | "house">} by round: whose random bytes it takes */
  entropies = new Map();
  /** @type {Map<string, string>} codes by `round/slot` of the cards opened to this viewer */
  faces = new Map();
  /** @type {Set<number>} slots of the open round that were opened to this viewer */
  openings = new Set();
  replayedFromStart = true; // whether the last replayed round was seen from its beginning
  /** @type {any} the round that was closed last, every card with its face, until the next one */
  closedRound = null;
  #roundStart = null; // the state of the open round when it was first seen
  /** @type {string[]} leaves of the open round, as they came */
  #leaves = [];

  /**
   * @param {string} table
   * @param {ConstructorParameters<typeof VerifiedLog>[1]} options of its log
   */
  constructor(table, options) {
    this.id = table;
    this.log = new VerifiedLog(table, options);
    this.ledger = this.#newLedger();
  }

  get version() {
    return this.log.version;
  }

  get round() {
    return this.ledger.round;
  }

  get key() {
    return this.log.key;
  }

  /** Whether the table is of a server with insecure test decks, which may choose the cards. */
  get insecure() {
    return Object.hasOwn(this.rules, INSECURE_RULE);
  }

  /** The rule of a practice table, which names its source; null for another table. */
  get practice() {
    return this.rules[PRACTICE_RULE] ?? null;
  }

  /** A card's code, if this viewer may know it; otherwise null. `card` is of the open round. */
  face(card) {
    return card.slot < 0 ? card.face : this.faces.get(`${this.round.number}/${card.slot}`) ?? null;
  }

  /**
   * Start from a snapshot. If events came before, only compare it with them.
   *
   * @param {Snapshot} snapshot
   */
  begin(snapshot) {
    return this.#collectEvidence([], async () => {
      if (this.version) {
        await this.log.compare(snapshot);
        this.#learn(snapshot.state);
        return;
      }
      const restored = await this.#readSnapshot(snapshot);
      this.log.begin(snapshot);
      this.#restart(restored, snapshot.state);
    });
  }

  /**
   * Restart from a snapshot that replaces the events after `after`; false if that was not needed.
   *
   * @param {Snapshot} snapshot
   * @param {{ proof: string[] | null, after: number }} link
   * @returns {Promise<boolean>}
   */
  reset(snapshot, { proof, after }) {
    return this.#collectEvidence([], async () => {
      const restored = await this.#readSnapshot(snapshot);
      const restarted = this.log.reset(snapshot, { proof, after });
      if (restarted) this.#restart(restored, snapshot.state);
      return restarted;
    });
  }

  /**
   * Learn the cards of a later snapshot that came without their private part, because they were in
   * the hand of this viewer's seat before the viewer was.
   */
  learn(state) {
    return this.#collectEvidence([], () => this.#learn(state));
  }

  #learn({ round }) {
    if (round === undefined || round.round !== this.round?.number) return;
    const here = new Set([...this.round.stacks.values()].flat().map((card) => card.slot));
    const known = round.cards.filter(([slot]) => here.has(slot));
    for (const [slot, card, salt] of known) this.#open({ slot, card, salt });
  }

  /** Whether the hand of this viewer's seat has a card whose face is not known here. */
  get isBlind() {
    const hand = this.round?.stacks.get(`hand:${this.seat}`) ?? [];
    return hand.some((card) => this.face(card) === null);
  }

  /** Take a signed head. */
  takeCheckpoint(note) {
    return this.#collectEvidence([], () => this.log.takeCheckpoint(note));
  }

  /** Take the signed head over all events that the server currently has of this table. */
  takeLatest(note) {
    return this.#collectEvidence([], () => this.log.takeLatest(note));
  }

  /** Take one event. Null if it came before, or only links our start to a saved head. */
  takeEvent(frame) {
    return this.#collectEvidence([frame], () => this.#takeEvent(frame));
  }

  /**
   * What is stored with the accusation `sentence`.
   *
   * @returns {Evidence}
   */
  evidence(sentence, notes = [], frames = []) {
    const all = [this.log.newest, ...notes, this.log.latest];
    const distinct = new Set(all.filter((note) => typeof note === "string" && note));
    return {
      table: this.id, key: this.key ?? "", sentence, version: this.version,
      notes: [...distinct], frames, leaves: [...this.#leaves],
    };
  }

  /** Attach the evidence to an accusation. An unexpected exception is an accusation, too. */
  async #collectEvidence(frames, step) {
    try {
      return await step();
    } catch (error) {
      if (error instanceof MissingEvents) throw error;
      if (error instanceof DealerError && !(error instanceof HouseCheated)) throw error;
      const fault = error instanceof HouseCheated ? error : accusationFor(error, frames[0]?.type);
      fault.evidence = this.evidence(fault.message, fault.notes, frames);
      throw fault;
    }
  }

  async #takeEvent(frame) {
    const { private: opening, opened, ...leaf } = frame;
    const { version, type, at } = leaf;
    if (!Number.isSafeInteger(version)) accuse("The server sent an event without a version.");
    const text = leafText(leaf);
    const hash = leafHash(utf8.encode(text));
    if (version <= this.version) {
      this.log.takeOldEvent(version, hash);
      return null;
    }
    if (version > this.version + 1) throw new MissingEvents();
    if (isTooNew(leaf)) throw new ConfigurationError(TOO_NEW);
    checkLeaf(version, leaf, { table: this.id, leaves: [{ at: this.at }] });
    const members = { ...leaf.public, ...written(leaf, opened) };
    if (type === "RoundClosed" && !this.insecure) await this.#verifyRound(leaf.public.secret);
    applyEvent(this.ledger, leaf); // synchronous, because this ledger knows no secret
    this.at = at;
    this.#applyRest({ ...leaf, public: members });
    const card = this.#cardOf(leaf, opening);
    this.#leaves.push(text);
    if (type === "TableOpened") await this.log.readSaved();
    this.log.append(hash, CHECKPOINT_TYPES.includes(type));
    await this.log.takeEarlyNotes();
    return { version, at, type, public: members, card, live: true };
  }

  /** Apply what the ledger of the verifier does not hold. */
  #applyRest({ version, type, at, public: event }) {
    const { round } = this;
    if (type === "TableOpened") {
      this.origin = event.origin;
      const { rules, name } = event;
      this.rules = name === undefined ? rules : { ...rules, name };
      this.log.pinKey(event.key);
    } else if (type === "SeatTaken") {
      const { seat, name, key = null, bot = false } = event;
      this.players.set(seat, { name, key, since: version, bot });
      if (key !== null) this.log.cosigners.add(key);
    } else if (SEAT_GIVEN_UP.includes(type)) {
      this.players.delete(event.seat);
      if (this.hostSeat === event.seat) this.hostSeat = null;
    } else if (type === "HostTransferred") {
      this.hostSeat = event.seat;
    } else if (type === "RoundOpened") {
      this.#openRound(event);
    } else if (type === "ShuffleStarted") {
      round.shuffle.startedAt = at;
    } else if (type === "EntropyClosed") {
      round.shuffle.closedAt = at;
    } else if (type === "ShuffleVoided") {
      round.voided += 1;
    } else if (type === "EntropyCommitted") {
      this.digests.add(event.digest);
    } else if (type === "DeckSealed") {
      for (const cards of round.stacks.values()) for (const card of cards) updateId(card);
    } else if (type === "CardShown") {
      round.shown.add(event.slot);
    }
  }

  #openRound(event) {
    const { deck, commit_ms: commitMs, reveal_ms: revealMs, commitment } = event;
    this.rounds = event.round;
    this.closedRound = null;
    this.entropies.set(event.round, event.entropy);
    const { round } = this;
    Object.assign(round, { deck, commitMs, revealMs, commitment, voided: 0, shown: new Set() });
    round.stacks.get("deck").forEach((card, index) => { card.id = -1 - index; });
    this.#roundStart = { base: null, seats: new Set(this.ledger.seats) };
    this.startMissed = false;
    this.#leaves = [];
    this.digests.clear();
    this.openings.clear();
  }

  /** Check the opening that came with an event; the code of its card, as far as it is known. */
  #cardOf({ type, public: event }, opening) {
    if (type === "CardShown") {
      this.#open(event);
      return event.card;
    }
    const hasCard = ["CardDrawn", "CardMoved", "CardPeeked"].includes(type);
    if (opening !== undefined) {
      if (Object.keys(opening).sort().join() !== "card,salt,slot") {
        accuse("The server opened a card in a malformed way.", { check: "cards" });
      }
      if (!hasCard || opening.slot !== event.slot) {
        accuse("The server opened another card than the one that was moved.", { check: "cards" });
      }
      this.#open(opening);
    }
    return hasCard ? this.faces.get(`${event.round}/${event.slot}`) ?? null : null;
  }

  /** Check that an opening { slot, card, salt } opens the slot's commitment. */
  #open({ slot, card, salt }) {
    const { round } = this;
    if (!round?.deck.includes(card)) {
      accuse("The server showed a card that is not in this round's deck.", { check: "cards" });
    }
    const { commitment } = cardIn(round, slot);
    const opens = isBytes32(salt) &&
      slotCommitment(unhex(this.id), round.number, slot, unhex(salt), card) === commitment;
    if (!opens) {
      accuse(
        "A card that you were shown is not the one that was sealed before the deal.",
        { check: "cards" },
      );
    }
    this.faces.set(`${round.number}/${slot}`, card);
    this.openings.add(slot);
  }

  /** Read a snapshot and check its head's signature. */
  async #readSnapshot({ version, state, note }) {
    let restored = null;
    try {
      restored = readSnapshot(state, this.#newLedger());
    } catch (error) {
      if (error instanceof DealerError) throw error;
      accuse("The server sent an impossible snapshot of the table.");
    }
    this.log.pinKey(state.key);
    for (const { key } of restored.players.values()) if (key !== null) this.log.cosigners.add(key);
    await this.log.readNote(note);
    if (version !== restored.version) {
      accuse("The server sent a snapshot of another version than it signed.", { notes: [note] });
    }
    return restored;
  }

  #restart({ version: _, ...restored }, state) {
    Object.assign(this, restored);
    this.closedRound = null;
    const { round } = this;
    if (round) this.entropies.set(round.number, round.entropy);
    this.openings.clear();
    this.#leaves = [];
    for (const [slot, card, salt] of state.round?.cards ?? []) this.#open({ slot, card, salt });
    const seats = new Set(this.ledger.seats);
    this.#roundStart = round && { base: structuredClone(round), seats };
    this.startMissed = round !== null;
  }

  #newLedger() {
    const roots = {
      get: (size) => {
        const root = this.log.rootAt(size);
        return root === null ? undefined : unhex(root);
      },
    };
    return newLedger(this.id, roots);
  }

  /** When a round closes: replay it with the secret, which must give everything that was played. */
  async #verifyRound(secret) {
    const start = this.#roundStart;
    this.#roundStart = null;
    if (start === null) return;
    this.replayedFromStart = start.base === null;
    const replayed = Object.assign(this.#newLedger(), { laidOut: this.practice !== null });
    try {
      await replayRound(replayed, start, {
        leaves: this.#leaves.map((text) => JSON.parse(text)),
        secret: unhex(secret),
      });
    } catch (error) {
      if (!(error instanceof RuleViolation)) throw error;
      accuse(
        `The secret that the house revealed does not give what was played. ${error.message}`,
        { check: "round" },
      );
    }
    this.closedRound = withFaces(this.round, replayed.round);
  }
}

/** A round with the faces that its replay has found; null for a card whose face it did not find. */
function withFaces(round, replayed) {
  const cards = [...replayed.stacks.values()].flat();
  const faces = new Map(cards.map(({ slot, face }) => [slot, face]));
  const known = (card) => (card.slot < 0 ? card : { ...card, face: faces.get(card.slot) ?? null });
  const stacks = new Map([...round.stacks].map(([name, all]) => [name, all.map(known)]));
  return { ...round, stacks };
}

function updateId(card) {
  if (card.slot >= 0) card.id = card.slot;
}

const isTooNew = ({ type, v }) =>
  typeof type === "string" && Number.isSafeInteger(v) && v > (schemaOf(type) ?? -1);

/** What people wrote in the event of a leaf: the part that is opened beside it. */
function written(leaf, opened) {
  try {
    return partOf(leaf, opened);
  } catch (error) {
    return accuse(`The server sent another name or text: ${error.message}`, { check: "roots" });
  }
}
