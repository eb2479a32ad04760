/** The English texts of the table page. */

import { timeOf } from "../clock.js";
import { capital, counted, joined } from "./english.js";

export const table = {
  title: (name, brand) => `${name} · ${brand ?? "dealer"}`,
  nameless: "A table",
  guest: "Guest",
  close: "Close",
  cancel: "Cancel",
  seat: (seat) => `Seat ${seat}`,
  theDeck: "the deck",
  thePile: (name) => (name === "table" ? "the table" : `the ${name} pile`),
  handOf: (name) => `${name}’s hand`,
  ownHand: "your hand",

  notStored:
    "This browser stores nothing for this page: you may lose your seat if you load it again.",
  ownTab: "Open the table in a tab of its own",

  allTables: "All tables",
  invite: "Invite",
  inviteTitle: "Invite players",
  inviteLink: "Invite link",
  inviteIntro: "Send this link to players. It opens this table, and they can sit down:",
  inviteUnknown:
    "Only invited players can sit down here, and this browser does not have the invitation: with " +
    "this link others can only watch. The host has the full link.",
  inviteLocalOnly:
    "This link works only on this computer. For players on other computers, start the server " +
    "with --host 0.0.0.0 and open this page at the computer’s network address.",
  otherDevice: "Play on another device",
  otherDeviceLink: "Your own link",
  otherDeviceIntro:
    "Open this link on your other device to continue there. Keep it secret: with it anyone can " +
    "play for you.",
  linkInvalid: "This link is no longer valid: its seat was left. You can take a seat here.",
  copy: "Copy the link",
  copied: "The link was copied.",
  copyManually: "The browser did not allow copying. The link is selected; please copy it.",
  help: "Keys and gestures",
  menu: "Menu",
  fourColours: "Four colours: blue diamonds, green clubs",
  auditPage: "Audit page: check this table",
  readHistory: "The history as plain text",
  takeBundle: "The bundle",
  watchAudit: "Replay and check it, swap by swap",
  people: (seated, watching) =>
    counted(seated, "player") + (watching ? `, ${watching} watching` : ""),
  status: ({ closed, round, shuffling, deckCount }) => {
    if (closed) return "closed";
    if (round === null) return "between rounds";
    const deck = shuffling ? "shuffling" : `${counted(deckCount, "card")} in the deck`;
    return `round ${round}, ${deck}`;
  },

  connection: {
    connecting: "Connecting to the server…",
    resuming: "The connection was lost; reconnecting. Your seat and your cards are kept.",
    draining: "The server is restarting. Your seat and your cards are kept; please wait.",
    away: "The server does not answer. This page keeps trying to reconnect.",
    restored: "Connected again; you are up to date.",
  },
  welcomeBack: (seat) => `Welcome back to seat ${seat}; you are up to date.`,

  superseded: "You are playing at this table in another window.",
  playHere: "Play here instead",

  hostCollects: "At this table the host may collect the cards of players’ hands.",

  watching: "You are watching",
  tableFull: "You are watching; all seats are taken",
  yourName: "Your name",
  yourSeat: "Seat",
  anySeat: "The next free one",
  inviteHere: "Your invite link",
  sitDown: "Sit down",
  sittingDown: "Sitting down…",

  players: "Other players",
  seatLabel: (name, seat, cards, presence, marks) =>
    `${name}, seat ${seat}, ${counted(cards, "card")}${marks === "" ? "" : `, ${marks}`}` +
    { here: ", here", unknown: "", away: ", disconnected", left: ", left the table" }[presence],
  seatDetails: (seat, taken, presence) => {
    if (!taken) return `Seat ${seat} is free; its player left.`;
    if (presence === undefined) return `Seat ${seat}.`;
    const at = presence.since === null ? null : timeOf(presence.since);
    const since = at === null ? "" : ` since ${at}`;
    return `Seat ${seat}; ${presence.here ? "connected" : "disconnected"}${since}.`;
  },
  handContents: (names) =>
    names.length === 0 ? "Holds no cards." : `Holds ${joined(tallied(names))}.`,
  cardMenu: {
    takeTop: (sign) => `Take the top card${sign === null ? "" : `, ${sign}`}`,
    turnTop: "Turn the top card up",
    takeAll: "Take all its cards",
    turnAll: "Turn all its cards up",
    moveTop: (sign) => `Put the top card${sign === null ? "" : `, ${sign},`} onto a pile…`,
    shufflePile: "Shuffle this pile",
    pileToDeck: "Put all its cards onto the deck",
    dealTo: (count) => (count === 1 ? "Deal to this player" : `Deal ${count} cards to this player`),
    collectHand: "Collect this hand onto the discard pile",
  },
  deckContents: (cards) => (cards === 0 ? "The deck is empty." : `${counted(cards, "card")}.`),
  deckMenu: {
    draw: (count) => `Draw ${counted(count, "card")}`,
    deal: (count) => `Deal ${counted(count, "card")} to each player`,
    burn: (count) => `Burn ${counted(count, "card")}`,
    cut: () => "Cut the deck",
    shuffle: () => "Shuffle the deck",
    turnOnto: (count) => `Turn ${counted(count, "card")} up onto the table`,
    putOnto: (count) => `Put ${counted(count, "card")} onto a pile…`,
  },
  cardActions: {
    play: "Play face up", playDown: "Play face down", playTo: "Play onto a pile…",
    discard: "Discard", give: "Give to a player…", passTo: "Pass, when all others pass, too…",
    show: "Show to all",
    showTo: "Show to one player…", putBack: "Put back on the deck",
  },
  someCards: (signs, cards) =>
    (signs.length < cards ? counted(cards, "card") : joined(signs)),
  changed: "These cards have changed in the meantime.",
  pile: (number) => `pile-${number}`,

  stacks: "Deck and piles",
  deck: "Deck",
  pileTitle: (name) =>
    new Map([["table", "Table"], ["discard", "Discard"], ["burn", "Burned"]]).get(name) ??
    name.replace(/^pass:(?=[1-9][0-9]*$)/, "For seat "),
  deckLabel: (cards) => `Deck, ${counted(cards, "card")}: draw`,
  pileLabel: (name, cards, seen) =>
    `${table.pileTitle(name)} pile, ${counted(cards, "card")}` +
    (seen.length === 0 ? "" : `: ${joined(seen)}`),
  pileContents: (cards) =>
    cards === 0 ? "This pile is empty." : `${counted(cards, "card")}, the top one first.`,
  tapToDraw: "Draw",
  tableClosed: "This table is closed. Thank you for playing.",
  betweenRounds: (rounds, mayOpen) => {
    if (mayOpen) {
      return rounds === 0 ? "When all players are here, start." : "Ready for the next round?";
    }
    return rounds === 0 ? "The host opens the first round." : "The host opens the next round.";
  },
  startRound: (round) => (round === 1 ? "Shuffle and start" : `Shuffle and start round ${round}`),
  roundOver: "All its cards are public now.",

  yourHand: (cards, selected) =>
    `Your hand, ${counted(cards, "card")}${selected > 0 ? `, ${selected} selected` : ""}`,
  emptyHand: "No cards yet",
  handHelp:
    "Arrow keys go from card to card, space selects one, alt and an arrow key moves it. " +
    "The question mark key lists all keys.",
  shownToAll: (name) => `${name}, shown to all`,
  sort: "Sort your hand",
  sortBy: { suit: "By suit", rank: "By rank" },
  sortKeys: { suit: "t", rank: "n" },
  sorted: { suit: "Sorted by suit.", rank: "Sorted by rank." },
  movedTo: (place, of) => `Now card ${place} of ${of}.`,

  toolbar: "Actions",
  groups: { hand: "Your cards", deck: "The deck", round: "The round" },
  howMany: (count) => `How many cards: ${count}`,
  fewer: "Fewer cards",
  more: "More cards",
  actions: {
    draw: "Draw", play: "Play", discard: "Discard", give: "Give", show: "Show", putBack: "Put back",
    takeBack: "Take back", passTo: "Pass…", showTo: "Show to one", playTo: "Play onto…",
    playDown: "Play face down", more: "More…",
    openRound: "Open a round", shuffle: "Shuffle", deal: "Deal", cut: "Cut", burn: "Burn",
    collect: "Collect all", closeRound: "Close the round", leave: "Leave your seat",
    closeTable: "Close the table",
  },
  hints: {
    draw: "Draw the set number of cards from the deck",
    play: "Play the selected cards face up onto the table",
    discard: "Discard the selected cards, face down",
    give: "Give the selected cards to another player",
    show: "Show the selected cards to all; they stay in your hand",
    putBack: "Put the selected cards back on top of the deck",
    takeBack: "Take back your last move, or your pass, if it showed no card to anyone",
    passTo: "Pass the selected cards to a player; they move when all players have passed",
    showTo: "Show the selected cards to one player",
    playTo: "Play the selected cards onto another pile",
    playDown: "Play the selected cards face down onto the table",
    more: "All that can be done with the selected cards",
    openRound: "Open a round: a fresh deck, shuffled by all",
    shuffle: "Shuffle the deck",
    deal: "Deal the set number of cards to every player",
    cut: "Cut the deck in the middle, or at the set number of cards",
    burn: "Burn cards from the top of the deck",
    collect: "Collect every hand and pile into the deck",
    closeRound: "Close the round: the house reveals its secret, and all cards become public",
    leave: "Leave your seat; your cards stay there",
    closeTable: "Close the table permanently",
  },
  otherKeys: {
    "1 … 9": "Set the number of cards for the next draw, deal, burn or cut; + and − change it",
    t: "Sort your hand by suit",
    n: "Sort your hand by rank",
    i: "Invite players",
    m: "What this browser has checked",
    z: "The menu",
    "?": "This list",
    Esc: "Clear the selection",
  },
  helpIntro: "Every action has a button or a gesture, and a key.",
  helpDragging:
    "Tap cards to select them, then tap a pile or a player; or drag them there. Tap the deck to " +
    "draw, or drag from it. Drag cards within your hand to sort them. A long press or a right " +
    "click on a card, the deck, a pile or a player opens a menu.",
  singleKeys: "Use single keys as shortcuts",
  giveTo: (cards) => `Give ${cards} to which player?`,
  passTo: "Pass to which player?",
  showTo: "Show to which player?",
  playOnto: "Play onto which pile?",
  putWhere: "Put onto which pile?",
  newPile: "Name of a new pile",
  faceDown: "Face down",
  playThere: "Play there",
  putThere: "Put there",
  confirm: {
    give: (cards, name) => `Give ${cards} to ${name}?`,
    closeRound: "All cards become public, and this round ends.",
    leave: "Your cards stay with the seat, and another player may sit down there.",
    closeTable: "The table cannot be used again; the game can still be checked.",
  },

  disabled: {
    stopped: "This page has stopped because a check failed.",
    closed: "This table is closed.",
    away: "There is no connection to the server; please wait.",
    roundOpen: "A round is open; close it first.",
    noRound: "No round is open yet.",
    shuffling: "A shuffle is running; please wait.",
    noSeat: "Sit down first.",
    alone: "There are no other players at this table.",
    noPlayers: "There are no players to deal to.",
    noneSelected: "Select cards of your hand first.",
    emptyHand: "Your hand is empty.",
    emptyDeck: "The deck is empty.",
    notShuffled: "Shuffle the deck first.",
    allInDeck: "All cards are in the deck.",
    notAllowed: "The rules of this table do not let you do that.",
    tooFew: (left) => `The deck has only ${counted(left, "card")} left.`,
    tooFewForAll: (left, wanted) =>
      `That takes ${counted(wanted, "card")}, and ${left} are left in the deck.`,
  },

  log: "What happened",
  showAll: "Show all",
  showLess: "Show less",
  audit: "Check it",
  logLines: {
    you: "you",
    aCard: "a card",
    skipped: "Some events are not listed; the table is shown as it is now.",
    tableOpened: "The table was opened.",
    tableClosed: "The table was closed.",
    youSit: (seat) => `You sat down at seat ${seat}.`,
    sits: (name, seat) => `${name} sat down at seat ${seat}.`,
    youLeft: "You left your seat.",
    left: (name) => `${name} left.`,
    youWereRemoved: (reason) => `You were removed from your seat${reason && `: ${reason}`}.`,
    removed: (name, reason) => `${name} was removed${reason && `: ${reason}`}.`,
    youAreHost: "You are the host now.",
    isHost: (name) => `${name} is the host now.`,
    theHost: "The host",
    note: (name, text) => `${name}: ${text}`,
    roundOpened: (round, cards) => `Round ${round} was opened with ${counted(cards, "card")}.`,
    roundClosed: (round) => `Round ${round} was closed; its cards are now public.`,
    cut: (what) => `${capital(what)} was cut.`,
    list: joined,
    cards: (count) => counted(count, "card"),
    drew: (name, what, from) => `${name} drew ${what}${from ? ` from ${from}` : ""}.`,
    youDrew: (what, from) => `You drew ${what}${from ? ` from ${from}` : ""}.`,
    dealt: (each, players, mine) =>
      `${counted(each, "card")} ${each === 1 ? "was" : "were"} ` +
      `dealt to each of ${players} players` +
      (mine === null ? "." : `; you got ${mine}.`),
    gave: (by, whom, what) => `${by ?? "You"} gave ${whom ?? "you"} ${what}.`,
    played: (by, what, onto) => `${by ?? "You"} played ${what}${onto ? ` onto ${onto}` : ""}.`,
    passed: (by, whom, what) => `${by ?? "You"} passed ${what} to ${whom ?? "you"}.`,
    tookBack: (by, what) => `${by ?? "You"} took back ${what}.`,
    theMove: "the last move",
    discarded: (by, what) => `${by ?? "You"} discarded ${what}.`,
    returned: (by, what) =>
      by === null
        ? `You put back ${what}.`
        : `${capital(what)} of ${by}’s hand went back to the deck.`,
    burned: (what) => `Burned: ${what}.`,
    moved: (what, from, to) => `${capital(what)} went from ${from} to ${to}.`,
    turned: (what) => `Turned up: ${what}.`,
    showed: (by, what) => `${by ?? "You"} showed ${what}.`,
    youAreShown: (what) => `You were shown ${what}.`,
    isShown: (name, what) => `${name} was shown ${what}.`,
    shuffling: (what) => `Shuffling ${what}…`,
    shuffled: (cards, swaps, names) =>
      `Shuffled ${counted(cards, "card")} (${counted(swaps, "swap")}), with random bytes of ` +
      (names.length === 0 ? "the house only." : `${joined(["the house", ...names])}.`),
    voided: (what) =>
      `The shuffle of ${what} was voided: a player did not reveal their random bytes.`,
  },

  badge: {
    yes: (passed, open) =>
      `Checked by this browser: all ${passed} checks passed` +
      (open > 0 ? `; ${open} could not be checked` : ""),
    house: (passed, open) =>
      `This round uses the house’s random bytes only; the ${passed} other checks passed` +
      (open > 1 ? `, and ${open - 1} could not be checked` : ""),
    waiting: () => "This browser checks each step",
    no: () => "A check failed",
  },
  badgeTitle: "What this browser has checked",
  badgeIntro: "These checks do not rely on the server: your own browser made them at each step.",
  badgeLimits:
    "While cards are hidden, no check can rule out that the server shows them to another player. " +
    "When the round is closed, the audit page replays the whole shuffle.",
  checkStates: {
    yes: "passed", waiting: "not yet", no: "failed", unavailable: "cannot be checked",
    doubt: "only you can know",
  },
  checkCount: (done, of) => {
    if (of !== null && of > 0) return `${done} of ${of}`;
    return done > 0 ? counted(done, "time") : "";
  },
  checks: {
    entropy: {
      title: "Your random bytes are used",
      means: "Your browser adds 32 random bytes to each shuffle.",
      yes: "Your browser’s 32 random bytes went into the shuffle, so no one else could choose it.",
    },
    commitment: {
      title: "All committed before any was revealed",
      means: "The house signs all commitments before the first is opened.",
      yes: "The house had signed every player’s commitment before the first one was opened.",
    },
    seal: {
      title: "Sealed before the deal",
      means: "Each card is sealed before the first is dealt.",
      yes: "Each card of the deck was sealed before the first one was dealt.",
    },
    cards: {
      title: "Each card is the sealed one",
      means: "Each card that you see must open its seal.",
      yes: "Every card that you saw opened the seal of its slot.",
    },
    roots: {
      title: "The log is the same for all",
      means: "Your browser keeps the log’s Merkle tree and compares its root.",
      yes: "Each signed checkpoint matches your browser’s own Merkle tree of the log.",
    },
    signatures: {
      title: "The house has signed",
      means: "Each checkpoint of the log is signed with the table’s key.",
      yes: "Each checkpoint is signed with this table’s key.",
      unavailable: "Signatures cannot be checked over plain http; everything else is.",
    },
    moves: {
      title: "Each move is legal",
      means: "Each event must be possible after those before it.",
      yes: "Each event was possible after those before it.",
    },
    round: {
      title: "The closed round, replayed",
      means: "When the round is closed, your browser replays it with the house’s secret.",
      yes: "The whole round was replayed with the house’s secret, without any difference.",
    },
  },
  doubtTitle: "Something that only you can know",
  cheated: {
    title: "The house cheated",
    line: (sentence) => `Stopped. ${sentence}`,
    means:
      "This page has left the table. The server’s data contradicts itself or breaks the rules; " +
      "download the evidence to show it to others.",
    close: "Look at the table",
    download: "Download the evidence",
  },

  marks: {
    host: "host",
    dealer: "has the dealer button",
    turn: "it is their turn",
    score: (score) => `score ${score}`,
  },
  ownMarks: (seat, marks) => `Your seat: ${seat}${marks === "" ? "" : `, ${marks}`}.`,
  atSeat: (pile, seat) => `${pile}, at seat ${seat}`,
  counters: "Counters",
  number: (value) => value.toLocaleString("en"),
  roundIsOver: (round) => `Round ${round} is over`,
  roundNotSeen: "This page has not seen its cards. The audit page shows them:",
};

/** Names with their counts: "4 face-down cards and the ace of spades". */
function tallied(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Array.from(counts, ([name, count]) => (count === 1 ? name : `${count} ${name}s`));
}
