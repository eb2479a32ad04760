/** What a table can be opened with: game, deck, seats, rules, who may come. */

import { element, field, setText } from "../dom.js";
import { fetchJson } from "../server_url.js";
import { loadPack, usePack } from "../packs.js";
import { inLanguage, lobby as texts } from "../texts.js";
import { inOrder, tile } from "./tiles.js";

const DECKS = ["52", "54", "36", "32", "24"];
const SHORT_DECKS = { 36: "A6789TJQK", 32: "A789TJQK", 24: "A9TJQK" };
const OF_GAME = "game";
const PACK = "pack:";

/** The games, of which none is chosen beforehand; all else opens below the one that is tapped. */
export class Choices {
  /** @type {Map<string, any>} the games of `/games.json` by name */
  #games = new Map();
  #name;
  #button;
  #onPack;
  #byPointer = false; // keys go from game to game, and stay there
  #tiles = element("fieldset", { class: "tiles" },
    element("legend", { class: "visually-hidden" }, texts.game));
  #opened = element("div", { class: "opened", hidden: true });
  #gameMeans = hint("game-means", "");
  #tableName = element("input", { name: "table", maxlength: 64, autocomplete: "off" });
  #seats = element("input", { name: "seats", type: "number", min: 1, max: 100, value: 6 });
  #deck = select("deck", DECKS.map((value) => [value, texts.decks[value]]));
  #shoe = element("input", { name: "shoe", type: "number", min: 1, max: 8, value: 1 });
  #preset = select("preset", Object.entries(texts.presets));
  #presetMeans = hint("preset-means", texts.presetMeans.free);
  #entropy = select("entropy", Object.entries(texts.entropies));
  #entropyMeans = hint("entropy-means", texts.entropyMeans.players);
  #listed = element("input", { type: "checkbox", name: "listed" });
  #invited = element("input", { type: "checkbox", name: "invited" });
  #watched = element("input", { type: "checkbox", name: "watched", checked: true });
  #collects = element("input", { type: "checkbox", name: "collects" });
  #broadcast = element("input", { name: "broadcast", type: "number", min: 0, max: 1440 });

  /**
   * @param {object} start
   * @param {HTMLElement} start.row with the player's name and the button
   * @param {HTMLInputElement} start.name
   * @param {HTMLElement} start.button which says what it opens
   * @param {(pack: import("../packs.js").Pack | null) => void} onPack another pack is chosen
   */
  constructor({ row, name, button }, onPack) {
    this.#name = name;
    this.#button = button;
    this.#onPack = onPack;
    explain(this.#preset, this.#presetMeans, () => texts.presetMeans[this.#preset.value]);
    explain(this.#entropy, this.#entropyMeans, () => texts.entropyMeans[this.#entropy.value]);
    this.#tiles.setAttribute("aria-describedby", this.#gameMeans.id);
    this.#tiles.addEventListener("change", ({ target }) => {
      if (target.name === "game") this.#onGame();
    });
    this.#tiles.addEventListener("click", ({ detail }) => {
      this.#byPointer = detail > 0; // the change comes next
    });
    this.#deck.addEventListener("change", () => this.#onDeck());
    this.#opened.append(row, this.#gameMeans, this.#details());
    addEventListener("resize", () => { // a phone was turned, or its keyboard opened
      const written = document.activeElement;
      if (this.#opened.contains(written)) written.scrollIntoView({ block: "nearest" });
    });
    this.#loadLists();
  }

  /** The element of the form. */
  get element() {
    return this.#tiles;
  }

  #details() {
    const choice = (input, label) => element("label", { class: "choice wide" }, input, label);
    return element("details", {}, element("summary", {}, texts.choose), element(
      "div", { class: "more" },
      field(texts.tableName, this.#tableName, { class: "field wide" }),
      field(texts.seats, this.#seats),
      field(texts.shoe, this.#shoe),
      field(texts.deck, this.#deck, { class: "field wide" }),
      field(texts.preset, this.#preset, { class: "field wide" }),
      this.#presetMeans,
      field(texts.entropy, this.#entropy, { class: "field wide" }),
      this.#entropyMeans,
      choice(this.#listed, texts.listed),
      choice(this.#invited, texts.invited),
      choice(this.#watched, texts.watched),
      choice(this.#collects, texts.collects),
      field(texts.broadcast, this.#broadcast, { class: "field wide" }),
    ));
  }

  /** The arguments of the client's `open`; an empty name if none was given. */
  async table() {
    const packName = this.#packName();
    const pack = this.#deck.value.startsWith(PACK) ? await loadPack(packName) : null;
    if (pack === null && this.#deck.value.startsWith(PACK)) throw new Error(texts.noPack);
    return {
      deck: this.#chosenDeck(pack),
      seats: this.#seats.valueAsNumber,
      name: this.#tableName.value.trim(),
      rules: this.#chosenRules(packName),
    };
  }

  async #loadLists() {
    const lists = await Promise.all(["packs.json", "games.json"].map(fetchJson));
    const [packs, games] = lists.map((list) => list ?? []);
    this.#deck.append(...packs.map(({ pack, title }) => option(PACK + pack, inLanguage(title))));
    for (const game of games) this.#games.set(game.game, game);
    // All at once: a tile that moves when others come is another one under the finger.
    this.#tiles.append(...[...inOrder(games), null].map(tile));
  }

  #chosenGame() {
    return this.#games.get(this.#tiles.querySelector("[name=game]:checked").value) ?? null;
  }

  #gameText() {
    const game = this.#chosenGame();
    if (game === null) return texts.anyGameMeans;
    const { players: { min, max, best }, cards } = game;
    return min === max ? texts.gameMeansExact({ players: max, cards })
      : texts.gameMeans({ min, max, best, cards });
  }

  /** Open the form below the chosen tile. A pointer goes on to a name that is missing. */
  #open() {
    this.#tiles.querySelector(".tile:has(:checked)").after(this.#opened);
    this.#opened.hidden = false;
    if (this.#byPointer && this.#name.value === "") this.#name.focus();
    if (this.#byPointer) this.#opened.scrollIntoView({ block: "nearest" });
  }

  /** A game sets the deck, the seats and the rules, which the player may change afterwards. */
  #onGame() {
    const game = this.#chosenGame();
    this.#open();
    setText(this.#gameMeans, this.#gameText());
    setText(this.#button, game === null ? texts.open
      : texts.play({ game: inLanguage(game.title) }));
    this.#deck.querySelector(`[value="${OF_GAME}"]`)?.remove();
    if (game !== null) {
      this.#deck.prepend(option(OF_GAME, texts.deckOfGame({ cards: game.cards })));
      this.#deck.value = OF_GAME;
      this.#seats.value = String(game.players.max);
      this.#preset.value = game.rules.preset ?? "free";
      this.#preset.dispatchEvent(new Event("change"));
    } else {
      this.#deck.value = "52";
    }
    this.#onDeck();
  }

  /** The number of decks is for decks that the player chose. */
  async #onDeck() {
    this.#shoe.disabled = this.#deck.value === OF_GAME;
    const name = this.#packName();
    const pack = name === null ? null : await loadPack(name);
    if (name !== this.#packName()) return;
    usePack(pack);
    this.#onPack(pack);
  }

  /** The pack of the chosen deck; null for standard cards. */
  #packName() {
    const { value } = this.#deck;
    if (value === OF_GAME) return this.#chosenGame()?.pack ?? null;
    return value.startsWith(PACK) ? value.slice(PACK.length) : null;
  }

  #chosenDeck(pack) {
    const { value } = this.#deck;
    if (value === OF_GAME) return this.#chosenGame().deck;
    const decks = this.#shoe.valueAsNumber;
    const ranks = SHORT_DECKS[value];
    if (decks === 1 && ranks === undefined && pack === null) return value;
    const cards = pack?.deck ??
      (ranks && Array.from("shdc", (suit) => Array.from(ranks, (rank) => rank + suit)).flat());
    if (decks === 1) return cards;
    return { decks, ...(cards ? { cards } : { jokers: value === "54" ? 2 : 0 }) };
  }

  /** @returns {import("../client.js").Rules} */
  #chosenRules(pack) {
    const game = this.#chosenGame();
    const ofGame = game !== null && (game.rules.preset ?? "free") === this.#preset.value;
    return {
      ...(ofGame ? game.rules : {}),
      preset: this.#preset.value,
      entropy: this.#entropy.value,
      ...(game === null ? {} : { game: game.game }),
      ...(pack === null ? {} : { pack }),
      ...(this.#listed.checked ? {} : { listed: false }),
      ...(this.#invited.checked ? { join: "invite" } : {}),
      ...(this.#watched.checked ? {} : { watch: "nobody" }),
      ...(this.#broadcast.value === "" ? {} : { broadcast: 60 * this.#broadcast.valueAsNumber }),
      collect: this.#collects.checked ? "host" : "nobody",
    };
  }
}

const option = (value, text) => element("option", { value }, text);

function select(name, options) {
  return element("select", { name }, ...options.map(([value, text]) => option(value, text)));
}

function hint(id, text) {
  return element("p", { class: "wide muted hint", id }, text);
}

/** Keep a sentence below a list that says what the chosen entry means. */
function explain(input, sentence, text) {
  input.setAttribute("aria-describedby", sentence.id);
  input.addEventListener("change", () => setText(sentence, text()));
}
