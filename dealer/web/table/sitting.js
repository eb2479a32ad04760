/** Sitting down: a name, a seat, and, where the table wants one, an invitation. */

import { make, write } from "../make.js";
import { table as texts } from "../texts/table.js";
import { freeSeats, hostCollects } from "./reading.js";

const NAME = "dealer/page/name";
const SEATS_OFFERED = 30;

/** The name that this player goes by, as this browser remembers it. */
export function rememberedName() {
  return localStorage.getItem(NAME) ?? "";
}

/** Where an invitation stands in a link, or in what somebody pasted; null if it does not. */
export function inviteIn(text) {
  const hash = text.includes("#") ? text.slice(text.indexOf("#") + 1) : text;
  const given = new URLSearchParams(hash).get("invite");
  return given ?? (/^[!-~]{16,}$/.test(text) && !/[/#]/.test(text) ? text : null);
}

/** Takes the invitation out of the page's address, where it must not stay to be seen. */
export function takeInvite(id) {
  const key = `dealer/page/invite/${id}`;
  const given = inviteIn(location.hash || "#");
  if (given !== null) {
    sessionStorage.setItem(key, given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? sessionStorage.getItem(key);
}

/** Draws into `place` who looks on without a seat, and lets them take one. */
export class Sitting {
  #game;
  #place;
  #name = make("input", {
    name: "player", maxlength: 64, required: true, autocomplete: "nickname",
    value: rememberedName(),
  });
  #seat = make("select", { name: "seat" });
  #invite = make("input", { name: "invite", autocomplete: "off" });
  #inviteField;
  #sit = make("button", { class: "chief", type: "submit" }, texts.sitDown);
  #status = make("p", { role: "status" });
  #title = make("h2", {});
  #collects = make("p", { class: "soft" }, texts.hostCollects);

  constructor(place, game) {
    this.#game = game;
    this.#place = place;
    const field = (label, input) => make("label", { class: "field" }, label, input);
    this.#inviteField = field(texts.inviteHere, this.#invite);
    place.append(make(
      "form", { class: "panel", onsubmit: (event) => this.#submitted(event) },
      this.#title, field(texts.yourName, this.#name), field(texts.yourSeat, this.#seat),
      this.#inviteField, this.#collects, this.#sit, this.#status,
    ));
  }

  /** `closedDoor` is why this browser may not even look on; null where it may. */
  draw(closedDoor = null) {
    const { table } = this.#game;
    const over = table !== null && (table.closed || this.#game.stopped);
    this.#place.hidden = over || (table !== null && table.seat !== null);
    if (this.#place.hidden) return;
    const free = table === null ? [] : freeSeats(table.state).slice(0, SEATS_OFFERED);
    const full = table !== null && free.length === 0;
    write(this.#title, closedDoor ?? (full ? texts.tableFull : texts.lookingOn));
    this.#sit.disabled = full;
    this.#collects.hidden = table === null || !hostCollects(table);
    this.#seat.parentElement.hidden = free.length < 2;
    this.#drawSeats(free);
    const invited = table === null || table.state.invited;
    this.#inviteField.hidden = !invited || this.#game.invite !== null || table?.host === true;
  }

  #drawSeats(free) {
    if (this.#seat.dataset.free === free.join()) return;
    const chosen = this.#seat.value;
    this.#seat.dataset.free = free.join();
    this.#seat.replaceChildren(
      make("option", { value: "" }, texts.anySeat),
      ...free.map((seat) => make("option", { value: seat }, texts.seat(seat))),
    );
    if (free.includes(Number(chosen))) this.#seat.value = chosen;
  }

  async #submitted(event) {
    event.preventDefault();
    const name = this.#name.value.trim();
    localStorage.setItem(NAME, name);
    this.#sit.disabled = true;
    write(this.#status, texts.sittingDown);
    try {
      const invite = this.#game.invite ?? inviteIn(this.#invite.value.trim());
      const seat = Number(this.#seat.value) || undefined;
      await this.#game.sit({ name, seat, ...(invite === null ? {} : { invite }) });
      write(this.#status, "");
    } catch (error) {
      write(this.#status, error.message);
    }
    this.#sit.disabled = false;
  }
}
