/**
 * The seat of this client's player: given up by an event, or changed when the player moves.
 *
 * A move is a note of the kind `seat_move` and, in the same append, SeatLeft and SeatTaken. The token
 * stays valid.
 */

import { SEAT_GIVEN_UP } from "../verify.js";
import { NO_SEAT } from "./stores.js";

/** @typedef {import("../client.js").TableEvent} TableEvent */
/** @typedef {import("./event_verifier.js").EventVerifier} EventVerifier */
/** @typedef {import("./stores.js").TableStore} TableStore */

/** The text of a note of the kind `seat_move` or `seat_offer`: from this seat to that one. */
export const SEAT_CHANGE = /^([1-9][0-9]{0,9})-([1-9][0-9]{0,9})$/;

export class OwnSeat {
  /** @type {number | null} the version of the SeatTaken by which the player moves */
  #moves = null;
  #verifier;
  #store;

  /**
   * @param {EventVerifier} verifier
   * @param {TableStore} store
   */
  constructor(verifier, store) {
    this.#verifier = verifier;
    this.#store = store;
  }

  /** The version at which the seat was taken. */
  get since() {
    return this.#store.facts.since ?? 0;
  }

  /**
   * Follow an event that was verified; whether the player has moved by it.
   *
   * @param {TableEvent} event
   */
  onEvent({ type, version, public: members }) {
    const { seat } = this.#verifier;
    const event = /** @type {any} */ (members);
    // Before `since` another player had this seat.
    if (seat === null || version <= this.since) return false;
    if (version === this.#moves && type === "SeatTaken") {
      this.sit(event.seat, version);
      return true;
    }
    if (event.seat !== seat) return false;
    if (type === "NoteAdded" && event.kind === "seat_move" && SEAT_CHANGE.test(event.text)) {
      this.#moves = version + 2;
    } else if (SEAT_GIVEN_UP.includes(type) && version + 1 !== this.#moves) {
      this.release();
    }
    return false;
  }

  /** After a snapshot: sit where the server says that the token's player sits. */
  follow(seat) {
    const since = this.#verifier.players.get(seat)?.since;
    if (this.#verifier.seat !== null && since !== undefined) this.sit(seat, since);
  }

  sit(seat, since) {
    this.#verifier.seat = seat;
    this.#store.update({ seat, since });
  }

  /** Store that other clients may play this seat, too, as with its token or its player's ticket. */
  share() {
    if (this.#store.facts.shared) return;
    this.#store.reload(); // another window of this browser may have changed the seat
    if (this.#store.facts.token) this.#store.update({ shared: true });
  }

  /** Forget the seat and its token, which is no longer valid. */
  release() {
    this.#store.update(NO_SEAT);
    this.#verifier.seat = null;
  }
}
