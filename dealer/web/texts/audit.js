/** The English texts of the audit page: was the game fair, and what happened in it. */

import { seatOf } from "../verify.js";
import { capital, counted } from "./english.js";

export const audit = {
  title: "Audit",
  home: "All tables",
  back: "The table",

  bring: "Was the game fair?",
  bringWords:
    "Bring the bundle of a table: the house’s whole log of it, with its signatures. This page " +
    "checks every line of it on your own computer, and then shows you each shuffle, swap by " +
    "swap. A house offers it on the table’s own audit page.",
  choose: "Choose a bundle",
  drop: "or drop it anywhere on this page",
  another: "Check another bundle",
  reading: "Fetching the bundle …",
  checking: "Checking every line …",

  problems: {
    nothing: "Nothing could be fetched. Is the house there?",
    private:
      "Only who sits at this table may have its bundle, and this browser does not know you there. " +
      "Somebody who plays can send you the bundle; drop it here.",
    unknown: "The house knows no such table.",
    damaged:
      "The bundle inside this page is damaged: what stands there is not what was put in. Get the " +
      "page again, or drop the bundle itself here.",
    refused: (status) => `The house did not give the bundle (answer ${status}).`,
    unreadable: "This file cannot be read.",
    machine:
      "This browser lends a page its cryptography only over https or from your own disk, and this " +
      "page came otherwise: nothing can be checked here. Download the page as one file, with the " +
      "bundle inside, and open that.",
    old: "This browser has no Ed25519: take a newer one (Chrome 137, Firefox 129, Safari 17).",
    round: (number) => `There is no round ${number} in this bundle.`,
    moment: "The link names a moment that this round does not have.",
  },

  holds: "Everything holds",
  broken: "Something does not hold",
  holdsWords: (lines, swaps, { open_rounds: open, shuffles, house_only: alone }) =>
    `All ${lines} lines were checked in this browser, and ${swaps} swaps made again from the ` +
    "bytes that they came from." +
    (open ? " A round is open, and so not proved yet." : "") +
    (alone ? ` In ${alone} of ${counted(shuffles, "shuffle")} there are no player’s bytes: it was ` +
      "only fixed before the deal." : ""),
  brokenWords: (check, line) => `The first fault is in line ${line}: the check “${check}” says no.`,
  checks: {
    form: "Form", heads: "Signatures", saved: "Your own notes", secrets: "Secrets",
    tape: "Swaps", seals: "Sealed cards", moves: "Moves",
  },
  theChecks: "The checks",
  counted: "What was counted",
  openLine: (line) => `Show line ${line}`,
  noLine: "The bundle has no such line.",

  against: "Checked against",
  againstKey: {
    none: "no key but the bundle’s own: who made the bundle could have made the key, too",
    kept: "the table’s key, as this browser came to know it when it was at the table",
    given: "the table’s key that you gave",
  },
  againstNotes: (kept, given) =>
    kept + given === 0
      ? "no signed head that you kept: whether it is the log you saw, nobody can tell"
      : [
          kept > 0 && `${counted(kept, "signed head")} that this browser kept when it was there`,
          given > 0 && `${counted(given, "signed head")} that you gave`,
        ].filter(Boolean).join(" and "),
  give: "Say what you know",
  key: "The table’s key (64 hex digits)",
  notes: "Signed heads that you kept (a note, or a client’s checkpoints.jsonl)",
  again: "Check again",
  badKey: "A key is 64 hex digits.",
  badNotes: "This is no signed head and no file of them.",

  film: "Watch it",
  whichRound: "Round",
  viewer: "Seen",
  above: "from above",
  spectator: "by a spectator",
  seat: (name) => `by ${name}`,
  chapters: "Parts of this round",
  openRound: (number) => `${number} (open)`,
  brokenRound: (number) => `${number} (to the fault)`,
  stillOpen:
    "This round is not closed. Until the house shows its secret nobody can see, or check, how its " +
    "cards were shuffled; come back when it is.",
  noRounds: "There is no round in this bundle that could be watched.",
  notTold: "Nothing can be watched: the log itself is not what the house signed.",
  shuffleChapter: ({ k, stack, voided, steps, all }) =>
    `Shuffle ${k + 1}${stack === "deck" ? "" : ` of ${stackName(stack)}`}` +
    (voided ? " (given up)" : steps < all ? ` (top ${steps})` : ""),
  beginChapter: "Opening",
  playChapter: "The game",

  controls: "Player",
  start: "To the start",
  backward: "One moment back",
  play: "Play",
  pause: "Pause",
  forward: "One moment on",
  end: "To the end",
  timeline: "Moment",
  speed: "Speed",
  speeds: { 1: "slow", 3: "normal", 10: "fast", 40: "very fast" },
  copy: "Copy link",
  copied: "Copied",
  copyThis: "A link to this moment",
  keys: "← → one moment · Page keys ten · Home, End · Space plays",
  of: (done, all) => `${done} of ${all}`,

  deck: "Deck",
  pile: (name) => `Pile “${name}”`,
  hand: (name) => name,
  cards: (count) => counted(count, "card"),
  felt: "The table at this moment",

  howSwap: "How this swap came about",
  step: "step",
  stepOf: (step, steps) => `${step} (0 to ${steps - 1})`,
  iBackward: (n, step, i) => `${n} − 1 − ${step} = ${i}`,
  iForward: (step) => `${step}`,
  jBackward: (word, b, j) => `${word} mod ${b} = ${j}`,
  jForward: (i, word, b, j) => `${i} + (${word} mod ${b}) = ${j}`,
  word: "word of the tape",
  wordAt: (at, word) => `no. ${at}: ${word}`,
  refused: (word, limit) =>
    `The word ${word} was refused: not below ${limit}, the part of 65536 that shares evenly.`,
  tape: "The tape of random words around this swap",
  tapeWords: "made of the house’s secret, the players’ bytes and the signed log before the shuffle",
  tapeWord: (at, word, refused) => `no. ${at}, ${word}${refused ? ", refused" : ""}`,
  hiddenSwap: "Whoever sat here then saw that the house swaps, and not which cards.",

  plot: "How many swaps each card saw",
  plotWords: (n, steps, algorithm) =>
    `In order of the stack before the shuffle. ${counted(steps, "swap")} of ${counted(n, "card")}, ` +
    `${algorithm}: each card is chosen once to be settled, and may be chosen as the other one any ` +
    "number of times before. The filled part is what happened up to this moment.",
  plotName: (most) => `Bars: swaps by card, the most is ${most}`,
  plotTable: "The same as a table",
  plotCard: "Card",
  plotPlace: "Place before",
  plotSwaps: "Swaps",
  noPlot: "No shuffle has begun at this moment.",

  take: "Take it with you",
  bundle: "The bundle",
  pageWithout: "This page as one file",
  pageWith: "This page with the bundle inside",
  takeWords:
    "The one file works from your disk, without a network and without this house. A house that " +
    "cheats could serve a page that lies, too: keep a copy from somewhere you trust.",

  limits: "What a proof does not say",
  limitsWords: [
    "A house that does not like a shuffle can give it up, shuffle again or never close the round. " +
      "That cannot be prevented, only counted; the checks count it.",
    "The dealer that runs knows the cards and could tell a friend. What is chosen after the seal, " +
      "like a cut, is a move and not chance.",
    "Who was silent, and who made a move, is the house’s word; only the player concerned knows.",
    "To somebody who was not there, a bundle proves that the house’s story fits together, and " +
      "what was cosigned by keys they know.",
    "A shuffle without any player’s bytes proves only that the cards were fixed before the deal.",
  ],

  /** What happened, from `{ who, card, from, to, place, … }`; `card` is null where it is hidden. */
  moments: {
    RoundOpened: ({ round, count, entropy }) =>
      `Round ${round} opens with a fresh deck of ${counted(count, "card")}. The house has promised ` +
      (entropy === "house" ? "its secret, and asks for nobody’s bytes." : "its secret."),
    SeatTaken: ({ who }) => `${who} sits down.`,
    SeatLeft: ({ who }) => `${who} leaves; the hand stays.`,
    ShuffleStarted: ({ k, stack, n, steps }) =>
      `Shuffle ${k + 1} begins: ${stackName(stack)}, ${counted(n, "card")}, ` +
      `${counted(steps, "swap")}.`,
    EntropyCommitted: ({ who, k }) => `${who} promises random bytes for shuffle ${k + 1}.`,
    EntropyClosed: () => "No more promises count. The house signs the log as it is: from here on " +
      "nobody can choose anything.",
    EntropyRevealed: ({ who }) => `${who} shows the promised bytes.`,
    ShuffleVoided: ({ k }) => `Shuffle ${k + 1} is given up: somebody did not show their bytes.`,
    CardsSwapped: ({ step, steps, i, j, card, other }) =>
      i === j
        ? `Swap ${step + 1} of ${steps}: ${card} stays at place ${i}.`
        : `Swap ${step + 1} of ${steps}: ${card} goes from place ${i} to ${j}, ${other} from ${j} ` +
          `to ${i}.`,
    hiddenSwap: ({ step, steps, i }) =>
      `Swap ${step + 1} of ${steps}: place ${i} changes with a place that is hidden.`,
    DeckSealed: ({ k, n }) =>
      `Shuffle ${k + 1} is done: each of the ${counted(n, "card")} is sealed in its place, before ` +
      "any is dealt.",
    CardDrawn: ({ who, card, from, below }) =>
      `${who} draws ${card ?? "a card"} from ${stackName(from)}` +
      (below ? `, not the top one.` : "."),
    CardMoved: ({ card, from, to, fromWho, toWho }) =>
      `${capital(card ?? "a card")} goes from ${whoseStack(from, fromWho)} to ` +
      `${whoseStack(to, toWho)}.`,
    CardShown: ({ card }) => `${capital(card)} is turned up for all.`,
    CardPeeked: ({ who, card }) => `${who} is shown ${card ?? "a card"}.`,
    StackCut: ({ stack, at }) =>
      `${capital(stackName(stack))} is cut: the cards from place ${at} on come to the bottom.`,
    RoundClosed: ({ round }) => `Round ${round} closes; the house shows its secret.`,
    fault: ({ line, sentence }) => `Here it stops: line ${line} does not hold. ${sentence}`,
  },
  player: (name, seat) => `${name} (seat ${seat})`,
  emptySeat: (seat) => `seat ${seat}`,
  the: (card) => `the ${card}`,
};

function stackName(stack) {
  if (stack === "deck") return "the deck";
  const seat = seatOf(stack);
  if (seat !== null) return `the hand of seat ${seat}`;
  return `the pile “${stack.slice(5)}”`;
}

function whoseStack(stack, who) {
  return who === null ? stackName(stack) : `the hand of ${who}`;
}
