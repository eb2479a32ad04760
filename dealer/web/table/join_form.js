/** The form to take a seat: a name, a seat, and, if the table requires one, an invitation. */

import { element, safeText, field, setAttribute, setText } from "../dom.js";
import { PLAYER, REMOVED, remember, stored, tabStored } from "../page_storage.js";
import { errorText, table as texts } from "../texts.js";
import { readmissions } from "./history.js";
import { broadcastSentence, freeSeats, hostCollects } from "./selectors.js";

const MAX_SEATS_LISTED = 30;
const MAX_NAME = 64;

/** The player's name, as this browser has stored it. */
export function storedName() {
  return stored.getItem(PLAYER) ?? "";
}

/**
 * The invitation in a link, in a link's fragment, or alone; null if there is none.
 *
 * @param {string} text
 */
export function inviteIn(text) {
  const hash = text.includes("#") ? text.slice(text.indexOf("#") + 1) : text;
  const given = secretIn(new URLSearchParams(hash), "invite");
  return given ?? (/^[!-~]{16,}$/.test(text) && !/[/#]/.test(text) ? text : null);
}

/** A secret of a link, without what the text around the link left at its end; null without one. */
const secretIn = (given, name) => given.get(name)?.replace(/[^\w-]+$/, "") ?? null;

/** Keep that this browser's player was removed for a reason, and under which name. */
export function keepRemoval(id, { version, public: { reason } }, name) {
  remember(REMOVED + id, new URLSearchParams({ version, reason, name }).toString());
}

/** Why this browser's player may not sit down at a table; null if they may. */
function removalKept(id, table) {
  const kept = new URLSearchParams(stored.getItem(REMOVED + id) ?? "");
  const allowed = table === null ? 0 : readmissions(table).get(kept.get("name")) ?? 0;
  return allowed > Number(kept.get("version")) ? null : kept.get("reason");
}

/** @typedef {{ by: string, name: string, place: number | null, broadcast: number }} Greeting */

/**
 * Take a link's secrets and greeting out of the page's address, where others could see them: an
 * invitation, which stays in session storage with the greeting, a ticket, and the token of a seat.
 * Those that are missing are null.
 *
 * @param {string} id
 * @returns {{
 *   invite: string | null, ticket: string | null, seat: string | null, greeting: Greeting,
 * }}
 */
export function takeLink(id) {
  const [inviteKey, greetingKey] = [`dealer/page/invite/${id}`, `dealer/page/greeting/${id}`];
  const given = new URLSearchParams(location.hash.slice(1));
  const [ticket, seat] = [secretIn(given, "ticket"), secretIn(given, "seat")];
  const invite = inviteIn(location.hash || "#");
  if (invite !== null) remember(inviteKey, invite, tabStored);
  if (given.has("by")) remember(greetingKey, location.hash.slice(1), tabStored);
  if ((invite ?? ticket ?? seat ?? given.get("by")) !== null) {
    history.replaceState(history.state, "", location.pathname);
  }
  const greeting = greetingIn(tabStored.getItem(greetingKey) ?? "");
  return { invite: invite ?? tabStored.getItem(inviteKey), ticket, seat, greeting };
}

/**
 * @param {string} members those of a link's fragment
 * @returns {Greeting}
 */
function greetingIn(members) {
  const given = new URLSearchParams(members);
  const text = (name) => safeText(given.get(name) ?? "").slice(0, MAX_NAME);
  return {
    by: text("by"), name: text("name"), place: Number(given.get("place")) || null,
    broadcast: Number(given.get("broadcast") ?? -1),
  };
}

export class JoinForm {
  #page;
  #container;
  #name = element("input", {
    name: "player", maxlength: MAX_NAME, required: true, autocomplete: "nickname",
    placeholder: texts.yourName,
  });
  #seat = element("select", { name: "seat" });
  #invite = element("input", { name: "invite", autocomplete: "off", placeholder: texts.inviteHere });
  #inviteField;
  #submit = element("button", { class: "primary", type: "submit" }, texts.sitDown);
  #status = element("p", { role: "status" });
  #title = element("h2", {});
  #collects = element("p", { class: "muted" }, texts.hostCollects);
  #broadcast = element("p", { class: "broadcast" });
  #watchMeans = element("p", { class: "muted" });
  #isInvited;
  #isWatching = false;

  constructor(container, page) {
    this.#page = page;
    this.#container = container;
    this.#name.value = storedName() || page.greeting.name;
    this.#isInvited = page.invite !== null || page.greeting.by !== "";
    this.#inviteField = field(texts.inviteHere, this.#invite);
    container.append(element(
      "form", { class: "panel", onsubmit: (event) => this.#onSubmit(event) },
      this.#title, this.#watchMeans,
      field(texts.yourName, this.#name), field(texts.yourSeat, this.#seat), this.#inviteField,
      this.#broadcast, this.#collects, this.#submit, this.#status,
    ));
  }

  /**
   * @param {string | null} [notWatchable] why this browser may not even watch; null if it may
   */
  draw(notWatchable = null) {
    const { table } = this.#page;
    const over = table !== null && (table.closed || this.#page.stopped);
    const free = table === null ? [] : freeSeats(table.state).slice(0, MAX_SEATS_LISTED);
    const full = table !== null && free.length === 0;
    this.#container.hidden = over || (full && this.#isWatching)
      || (table !== null && table.seat !== null);
    if (this.#container.hidden) return;
    const title = full ? texts.tableFull({ seats: table.state.seatsMax }) : this.#greeting();
    setText(this.#title, notWatchable ?? title);
    setText(this.#watchMeans, full && notWatchable === null ? texts.watchMeans : "");
    setText(this.#submit, full ? texts.watch : texts.sitDown);
    this.#submit.disabled = false;
    setAttribute(this.#name.form, "data-full", full);
    this.#name.disabled = full; // what is hidden is not asked for
    this.#collects.hidden = table === null || full || !hostCollects(table);
    const rule = table === null ? this.#page.greeting.broadcast : table.state.rules.broadcast;
    setText(this.#broadcast, broadcastSentence(rule));
    this.#drawRemoval();
    this.#seat.parentElement.hidden = free.length < 2;
    this.#drawSeats(free);
    this.#focusOnce();
    const invited = table === null || table.state.invited;
    this.#inviteField.hidden = !invited || this.#page.invite !== null || table?.host === true;
  }

  /** A player who came by an invitation writes a name; a spectator keeps the page's keys. */
  #focusOnce() {
    if (!this.#isInvited || this.#submit.disabled || this.#name.disabled) return;
    this.#isInvited = false;
    this.#name.focus({ preventScroll: true });
  }

  /** A player who was removed for a reason comes back, under any name, when the host allows it. */
  #drawRemoval() {
    const { id, table } = this.#page;
    const reason = removalKept(id, table);
    this.#submit.disabled ||= reason !== null && !this.#name.disabled;
    const sentence = reason === null ? "" : texts.removed({ reason: safeText(reason) });
    if (sentence !== "" || this.#status.dataset.removed === "") setText(this.#status, sentence);
    setAttribute(this.#status, "data-removed", sentence !== "");
  }

  /** An invited person is greeted with the names of the inviter and of the table. */
  #greeting() {
    const { table, greeting } = this.#page;
    if (greeting.by === "") return texts.watching;
    return texts.links.greeting({
      by: greeting.by, table: safeText(table?.state.name ?? texts.nameless),
    });
  }

  #drawSeats(free) {
    if (this.#seat.dataset.free === free.join()) return;
    const first = this.#seat.dataset.free === undefined;
    const chosen = first ? this.#page.greeting.place : this.#seat.value;
    this.#seat.dataset.free = free.join();
    this.#seat.replaceChildren(
      element("option", { value: "" }, texts.anySeat),
      ...free.map((seat) => element("option", { value: seat }, texts.seat({ seat }))),
    );
    if (free.includes(Number(chosen))) this.#seat.value = chosen;
  }

  async #onSubmit(event) {
    event.preventDefault();
    if (this.#name.disabled) {
      this.#isWatching = true;
      return this.draw();
    }
    const name = this.#name.value.trim();
    remember(PLAYER, name);
    this.#submit.disabled = true;
    setText(this.#status, texts.sittingDown);
    try {
      const invite = this.#page.invite ?? inviteIn(this.#invite.value.trim());
      const seat = Number(this.#seat.value) || undefined;
      await this.#page.join({ name, seat, ...(invite === null ? {} : { invite }) });
      setText(this.#status, "");
    } catch (error) {
      setText(this.#status, errorText(error));
    }
    this.#submit.disabled = false;
  }
}
