/**
 * Clients of deckofcardsapi.com from npm, as they are published, play with the server at the port in
 * the first argument: what they send to that name goes there. Prints what they found, as JSON.
 */

import http from "node:http";
import https from "node:https";

const [port] = process.argv.slice(1);
const HOST = "deckofcardsapi.com";
const connect = http.request;

/** Send a request to the server instead, with the `Host` that the client meant. */
function redirected(options, ...rest) {
  const { host, hostname, headers = {}, ...kept } = options;
  if (!(hostname ?? host ?? "").startsWith(HOST)) throw new Error(`a request to ${hostname ?? host}`);
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== "host");
  const here = { protocol: "http:", hostname: "127.0.0.1", port, agent: undefined };
  return connect({ ...kept, ...here, headers: { ...Object.fromEntries(others), Host: HOST } }, ...rest);
}

http.request = https.request = redirected;
const get = (...given) => {
  const request = redirected(...given);
  request.end();
  return request;
};
http.get = https.get = get;

const codes = (cards) => cards.map(({ code }) => code);

async function withDeckofcardsapiClient() {
  const { default: DeckBuilder } = await import("deckofcardsapi-client/lib/deckbuilder.js");
  const deck = await new DeckBuilder().standardDeck();
  const hand = await deck.draw(5);
  const drawn = codes(hand);
  const pile = await deck.getPile("discard");
  const empty = await pile.list();
  await pile.add(hand);
  const listed = codes(await pile.list());
  const bottom = codes(await pile.drawBottom(2));
  await pile.shuffle();
  const rest = codes(await pile.draw(3));
  const failed = await pile.draw(1).catch((error) => error.message);
  const unknown = await new DeckBuilder().fromId("none").catch((error) => error.message);
  const partial = await new DeckBuilder().unshuffled().ofCards(["AS", "KH"]).numberOfDeck(2).build();
  const ordered = codes(await partial.draw(4));
  const again = await new DeckBuilder().fromId(deck.getId());
  await deck.shuffle();
  return {
    drawn, empty, listed, bottom, rest, failed, unknown, ordered,
    again: [again.getRemaining(), again.isShuffled()], remaining: deck.getRemaining(),
  };
}

async function withDeckofcardsApi() {
  const { deck, draw, reshuffle, returnCards, pile } = await import("deckofcards-api");
  const opened = await deck({ shuffle: true, deck_count: 2, jokers_enabled: true });
  const { cards } = await draw(opened.deck_id, { count: 4 });
  const drawn = codes(cards);
  const mine = pile(opened.deck_id, "mine");
  const added = await mine.add({ cards: drawn.slice(0, 3) });
  const top = codes((await mine.draw({ count: 1 })).cards);
  const bottom = codes((await mine.draw({ bottom: true })).cards);
  const random = codes((await mine.draw({ random: true, count: 1 })).cards);
  const returned = (await returnCards(opened.deck_id)).remaining;
  const rest = (await reshuffle(opened.deck_id, { remaining: true })).remaining;
  const plain = await deck();
  return {
    opened: opened.remaining, drawn, added: added.piles, top, bottom, random, returned, rest,
    plain: codes((await draw(plain.deck_id, { count: 2 })).cards),
    pictures: cards.every(({ code, image }) => image.startsWith(`http://${HOST}/static/img/`) && code),
  };
}

async function withNodeOfCards() {
  const { default: client } = await import("node-of-cards");
  const call = (name, ...given) => new Promise((resolve, reject) => {
    client[name](...given, (error, answer) => (error ? reject(error) : resolve(answer)));
  });
  const { remaining } = await call("shuffle", { number_of_decks: 2 });
  const drawn = codes((await call("draw", { number_of_cards: 3 })).cards);
  await call("addToPile", "mine", drawn.slice(0, 2));
  const named = codes((await call("drawFromPile", "mine", drawn.slice(1, 2))).cards);
  const again = (await call("reshuffle", {})).remaining;
  const pristine = await call("pristine");
  return { remaining, drawn, named, again, pristine: [pristine.remaining, pristine.shuffled] };
}

console.log(JSON.stringify({
  "deckofcardsapi-client": await withDeckofcardsapiClient(),
  "deckofcards-api": await withDeckofcardsApi(),
  "node-of-cards": await withNodeOfCards(),
}));
