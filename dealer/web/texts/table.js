/** The English texts of the table. */

import { capital, counted, joined } from "./english.js";

export const table = {
  title: (name) => `${name} · dealer`,
  nameless: "A table",
  guest: "Guest",
  close: "Close",
  no: "No, stay",
  seat: (seat) => `Seat ${seat}`,
  theDeck: "the deck",
  thePile: (name) => (name === "table" ? "the table" : `the ${name} pile`),
  handOf: (name) => `${name}’s hand`,
  yourHandIs: "your hand",

  allTables: "All tables",
  invite: "Invite",
  inviteTitle: "Invite players",
  inviteLink: "Invite link",
  inviteIntro: "Who opens this link comes to this table and can sit down:",
  inviteUnknown:
    "Seats here are for invited players only, and this browser does not have the invitation: " +
    "who opens this link can look on. The host has the full link.",
  inviteNear:
    "This link works on this computer alone. For others, start the house with --host 0.0.0.0 " +
    "and open this page by the computer’s address.",
  copy: "Copy the link",
  copied: "The link is on your clipboard.",
  copyYourself:
    "This browser does not let a page copy here: the link is selected, copy it yourself.",
  help: "Keys and gestures",
  menu: "Menu",
  fourColours: "Four colours: blue diamonds, green clubs",
  auditPage: "Check this table: the audit page",
  readHistory: "The history in plain text",
  takeBundle: "the bundle",
  watchAudit: "Watch it being checked, swap by swap",
  people: (seated, watching) =>
    counted(seated, "player") + (watching ? `, ${watching} looking on` : ""),
  standing: ({ closed, round, shuffling, deckCount }) => {
    if (closed) return "closed";
    if (round === null) return "between rounds";
    return `round ${round}, ${shuffling ? "shuffling" : `${counted(deckCount, "card")} to draw`}`;
  },

  lineSays: {
    connecting: "Looking for the house…",
    resuming: "The line is broken; coming back. Nothing is lost.",
    draining: "The house is restarting. Your seat and your cards are kept; this page waits.",
    away: "The house does not answer. This page goes on trying, and comes back where it was.",
    back: "Back at the table: nothing was missed.",
  },
  welcomeBack: (seat) => `Welcome back to seat ${seat}: nothing was missed.`,

  elsewhere: "You play at this table in another window.",
  playHere: "Play here instead",

  hostCollects: "By this table’s rules the host may collect the cards of players’ hands.",

  lookingOn: "You are looking on",
  tableFull: "You are looking on; every seat is taken",
  yourName: "Your name",
  yourSeat: "Seat",
  anySeat: "The next free one",
  inviteHere: "The link that invited you",
  sitDown: "Sit down",
  sittingDown: "Sitting down…",

  players: "Other players",
  seatLine: (cards, presence) =>
    counted(cards, "card") + { here: "", unknown: "", away: " · away", left: " · left" }[presence],
  seatLabel: (name, seat, cards, presence) =>
    `${name}, seat ${seat}, ${counted(cards, "card")}` +
    {
      here: ", here", unknown: "", away: ", dropped off the line", left: ", left the table",
    }[presence],
  seatSays: (seat, taken, presence) => {
    if (!taken) return `Seat ${seat} is free; its player left.`;
    if (presence === undefined) return `Seat ${seat}.`;
    const at = presence.since === null ? null : new Date(presence.since).toLocaleTimeString();
    const since = at === null ? "" : ` since ${at}`;
    return `Seat ${seat}; ${presence.here ? "here" : "dropped off the line"}${since}.`;
  },
  holds: (names) => (names.length === 0 ? "Holds no cards." : `Holds ${joined(tallied(names))}.`),
  sheet: {
    takeTop: "Take the top card",
    turnTop: "Turn the top card up",
    shufflePile: "Shuffle this pile",
    pileToDeck: "Put all of it onto the deck",
    dealTo: "Deal to this player",
    collectHand: "Collect this hand onto the discard pile",
  },

  stacks: "Deck and piles",
  deck: "Deck",
  pileCalled: (name) =>
    new Map([["table", "Table"], ["discard", "Discard"], ["burn", "Burned"]]).get(name) ?? name,
  deckLabel: (cards) => `Deck, ${counted(cards, "card")}: draw`,
  pileLabel: (name, cards, seen) =>
    `${table.pileCalled(name)} pile, ${counted(cards, "card")}` +
    (seen.length === 0 ? "" : `: ${joined(seen)}`),
  pileHolds: (cards) =>
    cards === 0 ? "No card lies here." : `${counted(cards, "card")}, the top one first.`,
  tapToDraw: "Draw",
  tableClosed: "This table is closed. Thank you for playing.",
  between: (rounds, mine) => {
    if (mine) return rounds === 0 ? "Everybody here? Then shuffle." : "Another one?";
    return rounds === 0 ? "The host opens the first round." : "The host opens the next round.";
  },
  begin: (round) => (round === 1 ? "Shuffle and start" : `Shuffle and start round ${round}`),
  roundIsOver: (round) => `Round ${round} is over, and open to everybody’s eyes:`,

  yourHand: (cards, selected) =>
    `Your hand, ${counted(cards, "card")}${selected > 0 ? `, ${selected} chosen` : ""}`,
  emptyHandHere: "No cards yet",
  handHelp:
    "Arrow keys go from card to card, space chooses one, alt and an arrow key moves it. " +
    "The question mark lists the keys for what you can do.",
  shownToAll: (name) => `${name}, shown to all`,
  sorts: "Sort your hand",
  sortBy: { suit: "By suit", rank: "By rank" },
  sortKeys: { suit: "t", rank: "n" },
  sorted: { suit: "Sorted by suit.", rank: "Sorted by rank." },
  movedTo: (place, of) => `Now card ${place} of ${of}.`,

  tools: "What you can do",
  groups: { hand: "Your cards", deck: "The deck", round: "The round" },
  howMany: (count) => `How many cards: ${count}`,
  fewer: "Fewer cards",
  more: "More cards",
  actions: {
    draw: "Draw", play: "Play", discard: "Discard", give: "Give", show: "Show", putBack: "Put back",
    showTo: "Show to one", playTo: "Play onto…", openRound: "Open a round", shuffle: "Shuffle",
    deal: "Deal", cut: "Cut", burn: "Burn", collect: "Collect all", closeRound: "Close the round",
    leave: "Leave your seat", closeTable: "Close the table",
  },
  means: {
    draw: "Draw from the deck, as many cards as are set",
    play: "Play the chosen cards face up onto the table",
    discard: "Discard the chosen cards, face down",
    give: "Give the chosen cards to another player",
    show: "Show the chosen cards to all; they stay in your hand",
    putBack: "Put the chosen cards back on top of the deck",
    showTo: "Show the chosen cards to one player",
    playTo: "Play the chosen cards onto another pile",
    openRound: "Open a round: a fresh deck, shuffled by all",
    shuffle: "Shuffle the deck",
    deal: "Deal to every player, as many cards each as are set",
    cut: "Cut the deck in the middle, or at as many cards as are set",
    burn: "Burn cards from the top of the deck",
    collect: "Collect every hand and pile into the deck",
    closeRound: "Close the round: the house shows its secret, and everybody all cards",
    leave: "Leave your seat; your cards stay there",
    closeTable: "Close the table for good",
  },
  otherKeys: {
    "1 … 9": "How many cards the next draw, deal, burn or cut is about; + and − change it",
    t: "Sort your hand by suit",
    n: "Sort your hand by rank",
    i: "Invite players",
    m: "What this browser checked",
    z: "The menu",
    "?": "This list",
    Esc: "Let go of the chosen cards",
  },
  helpIntro: "Everything is one tap or drag, and one key.",
  helpDragging:
    "Tap cards to choose them, then tap a pile or a player; or drag them there. Tap the deck to " +
    "draw, or drag from it. Cards dragged within your hand stay where you put them.",
  singleKeys: "Single keys do things",
  giveTo: "Give to whom?",
  showTo: "Show to whom?",
  playOnto: "Play onto which pile?",
  newPile: "a new pile’s name",
  faceDown: "Face down",
  playThere: "Play there",
  sure: {
    closeRound: "All cards are open to everybody then, and nobody can play on in this round.",
    leave: "Your cards stay with the seat, and somebody else may sit down there.",
    closeTable: "Nobody can play here any more; everything that happened can still be checked.",
  },

  hindered: {
    stopped: "This page has stopped: see what did not hold.",
    closed: "This table is closed for good.",
    away: "There is no line to the house just now; wait a moment.",
    roundOpen: "A round is open; close it first.",
    noRound: "No round is open yet.",
    shuffling: "A shuffle is running; wait a moment.",
    noSeat: "Sit down first.",
    alone: "Nobody else sits at this table.",
    nobodySits: "Nobody sits at this table to deal to.",
    noneSelected: "Choose cards of your hand first.",
    emptyHand: "Your hand is empty.",
    emptyDeck: "The deck is empty.",
    notShuffled: "Shuffle the deck first.",
    nothingOut: "All cards are in the deck.",
    notEntitled: "The rules of this table do not let you do that.",
    tooFew: (left) => `The deck has only ${counted(left, "card")} left.`,
    tooFewForAll: (left, wanted) =>
      `That takes ${counted(wanted, "card")}, and ${left} are left in the deck.`,
  },

  log: "What happened",
  wholeLog: "Show all",
  lastLine: "Show less",
  audit: "Check it",
  told: {
    you: "you",
    aCard: "a card",
    skipped: "Much happened meanwhile; the table is shown as it is now.",
    tableOpened: "The table was opened.",
    tableClosed: "The table was closed.",
    youSit: (seat) => `You sat down at seat ${seat}.`,
    sits: (name, seat) => `${name} sat down at seat ${seat}.`,
    youLeft: "You left your seat.",
    left: (name) => `${name} left.`,
    roundOpened: (round, cards) => `Round ${round} was opened with ${counted(cards, "card")}.`,
    roundClosed: (round) => `Round ${round} was closed; its cards are open to everybody.`,
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
    discarded: (by, what) => `${by ?? "You"} discarded ${what}.`,
    returned: (by, what) =>
      by === null
        ? `You put back ${what}.`
        : `${capital(what)} of ${by}’s hand went back to the deck.`,
    burned: (what) => `${capital(what)} burned.`,
    moved: (what, from, to) => `${capital(what)} went from ${from} to ${to}.`,
    turned: (what) => `${capital(what)} turned up.`,
    showed: (by, what) => `${by ?? "You"} showed ${what}.`,
    youAreShown: (what) => `You were shown ${what}.`,
    isShown: (name, what) => `${name} was shown ${what}.`,
    shuffling: (what) => `Shuffling ${what}…`,
    shuffled: (cards, swaps, names) =>
      `Shuffled ${counted(cards, "card")} (${counted(swaps, "swap")}), by ` +
      (names.length === 0 ? "the house alone." : `${joined(["the house", ...names])}.`),
    voided: (what) => `The shuffle of ${what} was given up: somebody did not keep their promise.`,
  },

  mark: {
    yes: (held, open) =>
      `Checked by this browser: all ${held} hold` + (open > 0 ? `; ${open} could not be checked` : ""),
    house: (held, open) =>
      `This round’s chance is the house’s alone; the ${held} other checks hold` +
      (open > 1 ? `, and ${open - 1} could not be made` : ""),
    waiting: () => "This browser checks each step",
    no: () => "This does not hold",
  },
  markTitle: "What this browser checked",
  markIntro: "Nobody’s word is taken for these. Your own browser worked them out, at each step:",
  markLimits:
    "What no check can show while cards are hidden: whether the house whispers to a friend. When " +
    "the round is closed, the audit page makes the whole shuffle again before your eyes.",
  states: {
    yes: "holds", waiting: "not yet", no: "does not hold", unavailable: "cannot be checked",
    doubt: "only you can know",
  },
  tally: (done, of) => {
    if (of !== null && of > 0) return `${done} of ${of}`;
    return done > 0 ? counted(done, "time") : "";
  },
  checks: {
    entropy: {
      title: "Your own chance is in it",
      means: "Your browser brings 32 random bytes to each shuffle.",
      yes: "Your browser’s 32 random bytes went into the shuffle, so nobody could choose it.",
    },
    commitment: {
      title: "All promised before any opened",
      means: "The house signs all promises before the first is opened.",
      yes: "The house had signed everybody’s promise before the first one was opened.",
    },
    seal: {
      title: "Sealed before the deal",
      means: "Each card is sealed before the first is dealt.",
      yes: "Each card of the deck was sealed before the first one was dealt.",
    },
    cards: {
      title: "Each card is the sealed one",
      means: "Each card that you see has to open its seal.",
      yes: "Every card that you saw opened the seal of its place.",
    },
    roots: {
      title: "The log is the same for all",
      means: "Your browser keeps the log’s tree, and compares its root.",
      yes: "Each head that the house gave is the root of your browser’s own tree of the log.",
    },
    signatures: {
      title: "The house signed for it",
      means: "Each head of the log is signed with the table’s key.",
      yes: "Each head carries the signature of this table’s key.",
      unavailable: "Signatures cannot be checked over plain http; everything else is.",
    },
    moves: {
      title: "Each move is a legal one",
      means: "Each event has to be one that can follow those before.",
      yes: "Each event could follow those before it.",
    },
    round: {
      title: "The closed round, made again",
      means: "When the round is closed, all of it is made again from the secret.",
      yes: "The whole round was made again from the house’s secret, and nothing differed.",
    },
  },
  doubtTitle: "Something only you can know",
  cheated: {
    title: "The house did not play fair",
    line: (sentence) => `Stopped. ${sentence}`,
    means:
      "This page has left the table and does nothing more there. Two things that the house said " +
      "cannot both be true; keep the evidence, it shows others what you saw.",
    look: "Look at the table",
    download: "Download the evidence",
  },
};

/** Names with how often they come: "4 face-down cards and the ace of spades". */
function tallied(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Array.from(counts, ([name, count]) => (count === 1 ? name : `${count} ${name}s`));
}
