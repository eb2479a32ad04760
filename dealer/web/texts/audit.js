/** The English texts of the audit page. */

import { seatOf } from "../verify.js";
import { capital, counted } from "./english.js";

export const audit = {
  title: "Audit",
  home: "All tables",
  back: "The table",

  open: "Was the game fair?",
  openWords:
    "Open the bundle of a table: its whole log, with the house’s signatures. This page verifies " +
    "every line of it on your own computer, and then replays each shuffle, swap by swap. A " +
    "table’s own audit page offers its bundle as a download.",
  choose: "Choose a bundle",
  drop: "or drop it anywhere on this page",
  another: "Check another bundle",
  reading: "Fetching the bundle…",
  checking: "Checking every line…",

  problems: {
    network: "The bundle could not be fetched: the server does not answer.",
    private:
      "Only players of this table may fetch its bundle, and this browser is not one of them. Ask " +
      "a player for the bundle, and drop it here.",
    unknown: "The server has no such table.",
    damaged:
      "The bundle inside this page is damaged. Download the page again, or drop the bundle " +
      "itself here.",
    refused: (status) => `The server did not send the bundle (HTTP status ${status}).`,
    unreadable: "This file cannot be read.",
    noWebCrypto:
      "Browsers offer WebCrypto only to pages over https or from a local file, so nothing can be " +
      "checked here. Download the page as one file, with the bundle inside, and open that.",
    noEd25519: "This browser has no Ed25519: use a newer one (Chrome 137, Firefox 129, Safari 17).",
    round: (number) => `There is no round ${number} in this bundle.`,
    moment: "The link points to an event that this round does not have.",
  },

  passed: "All checks passed",
  partly: (passed, open) => `${counted(passed, "check")} passed, ${open} not checked`,
  failed: "A check failed",
  passedWords: (lines, swaps, { open_rounds: open, shuffles, voided, house_only: houseOnly }) =>
    `All ${counted(lines, "line")} were read in this browser, and ${counted(swaps, "swap")} ` +
    "recomputed from the random bytes." +
    (open ? " One round is still open, so it is not proved yet." : "") +
    (voided ? ` ${voided} of ${counted(shuffles, "shuffle")} ${voided === 1 ? "was" : "were"} ` +
      "voided." : "") +
    (houseOnly ? ` ${houseOnly} of ${counted(shuffles, "shuffle")} used no player’s random ` +
      "bytes: that proves only that the cards were fixed before the deal." : ""),
  failedWords: (check, line) => `The first fault is in line ${line}: the check “${check}” failed.`,
  theChecks: "The checks",
  counted: "Counts",
  openLine: (line) => `Show line ${line}`,
  noLine: "The bundle has no such line.",

  against: "Checked against",
  againstKey: {
    none: "only the key in the bundle, which the author of the bundle may have made",
    saved: "the table’s key, which this browser stored when it was at the table",
    given: "the table’s key that you gave",
  },
  againstNotes: (saved, given) =>
    saved + given === 0
      ? "no saved checkpoint, so this page cannot check that this is the log you saw"
      : [
          saved > 0 && `${counted(saved, "checkpoint")} that this browser stored at the table`,
          given > 0 && `${counted(given, "checkpoint")} that you gave`,
        ].filter(Boolean).join(" and "),
  give: "Enter a key or checkpoints",
  key: "The table’s key (64 hex digits)",
  notes: "Checkpoints that you saved (a note, or a client’s checkpoints.jsonl)",
  again: "Check again",
  badKey: "A key is 64 hex digits.",
  badNotes: "This is neither a checkpoint nor a file of checkpoints.",

  replay: "Replay",
  whichRound: "Round",
  viewer: "View",
  allCards: "all cards",
  spectator: "of a spectator",
  seat: (name) => `of ${name}`,
  chapters: "Parts of this round",
  openRound: (number) => `${number} (open)`,
  brokenRound: (number) => `${number} (to the fault)`,
  stillOpen:
    "This round is not closed. It can be replayed and checked once the house has revealed its " +
    "secret.",
  noRounds: "There is no round in this bundle that could be replayed.",
  notReplayed: "Nothing can be replayed: the log is not what the house signed.",
  shuffleChapter: ({ k, stack, voided, steps, all }) =>
    `Shuffle ${k + 1}${stack === "deck" ? "" : ` of ${stackName(stack)}`}` +
    (voided ? " (voided)" : steps < all ? ` (top ${steps})` : ""),
  beginChapter: "Opening",
  playChapter: "The game",

  controls: "Replay controls",
  start: "To the start",
  backward: "One event back",
  play: "Play",
  pause: "Pause",
  forward: "One event forward",
  end: "To the end",
  timeline: "Event",
  speed: "Speed",
  speeds: { 1: "slow", 3: "normal", 10: "fast", 40: "very fast" },
  copy: "Copy link",
  copied: "Copied",
  copyThis: "A link to this event",
  keys: "← → one event · Page keys ten · Home, End · Space plays",
  of: (done, all) => `${done} of ${all}`,

  deck: "Deck",
  pile: (name) => `Pile “${name}”`,
  hand: (name) => name,
  cards: (count) => counted(count, "card"),
  tableView: "The table after this event",

  history: "What happened",
  swapsInARow: (count) => `${counted(count, "swap")}; the replay shows each.`,

  arithmetic: "Show the arithmetic",
  fromZero:
    "Here the numbers are those of the log: steps, places, words and shuffles (k) count from 0. " +
    "In the replay, place 1 is the bottom card.",
  logged: "This event as it is in the log",
  howSwap: "How this swap was derived",
  step: "step",
  stepOf: (step, steps) => `${step} (0 to ${steps - 1})`,
  iBackward: (n, step, i) => `${n} − 1 − ${step} = ${i}`,
  iForward: (step) => `${step}`,
  jBackward: (word, b, j) => `${word} mod ${b} = ${j}`,
  jForward: (i, word, b, j) => `${i} + (${word} mod ${b}) = ${j}`,
  word: "word of the tape",
  wordAt: (at, word) => `no. ${at}: ${word}`,
  rejected: (word, limit) =>
    `The word ${word} was rejected, because it is not below ${limit}: it would favour some cards.`,
  tape: "The tape of random words around this swap",
  tapeWords:
    "derived from the house’s secret, the players’ random bytes and the log that was signed " +
    "before the shuffle",
  tapeWord: (at, word, rejected) => `no. ${at}, ${word}${rejected ? ", rejected" : ""}`,
  hiddenSwap: "During the game this viewer saw that a swap was made, but not of which cards.",

  plot: "Swaps of a card, expected and actual",
  plotWords: (shuffle, n, simulated) =>
    `How many of the ${counted(n, "card")} of shuffle ${shuffle} took part in one swap, in two and ` +
    `so on. Outlined: the mean of ${simulated} simulated fair shuffles, with the usual range of 98 ` +
    "in 100 of them. Filled: this shuffle. A fair shuffle is outside of a range now and then; the " +
    "checks show whether it is the right one.",
  plotName: (shuffle) =>
    `Bars: cards by their number of swaps in shuffle ${shuffle}, expected beside actual`,
  plotTable: "The same numbers as a table",
  plotSwaps: "Swaps of a card",
  plotExpected: "Cards expected",
  plotRange: "Usual range",
  plotCards: "Cards in this shuffle",
  range: (low, high) => `${low} to ${high}`,
  noPlot: "No shuffle has been finished yet.",

  take: "Download",
  bundle: "The bundle",
  pageWithout: "This page as one file",
  pageWith: "This page with the bundle inside",
  takeWords:
    "The one file works from your disk, without a network and without this server. A cheating " +
    "server could also serve a false audit page: keep a copy from a source that you trust.",

  limits: "What a proof does not show",
  limitsWords: [
    "A house that does not like a shuffle can void it, shuffle again, or never close the round. " +
      "That cannot be prevented, only counted; the checks count it.",
    "The server knows the cards and could show them to a player. What a player chooses after the " +
      "seal, like a cut, is a move and not chance.",
    "That a player was silent, or made a move, is the house’s claim; only that player knows.",
    "Without saved checkpoints, a bundle shows only that it is consistent, and what was cosigned " +
      "by keys that you know.",
    "A shuffle without any player’s bytes proves only that the cards were fixed before the deal.",
  ],

  /** What happened, from `{ player, card, from, to, place, … }`; `card` is null where hidden. */
  moments: {
    RoundOpened: ({ round, count, entropy }) =>
      `Round ${round} opens with a fresh deck of ${counted(count, "card")}. The house has ` +
      "committed to its secret" +
      (entropy === "house" ? ", and uses no players’ random bytes." : "."),
    SeatTaken: ({ player }) => `${player} sits down.`,
    SeatLeft: ({ player }) => `${player} leaves; the hand stays.`,
    SeatVacated: ({ player, by, reason }) =>
      `The ${by} removes ${player}${reason && ` (${reason})`}; the hand stays.`,
    HostTransferred: ({ player }) => `${player} is the host from here on.`,
    NoteAdded: ({ player, seat, kind, text }) =>
      kind === "take_back"
        ? `${seat === 0 ? "The host" : player} took back event ${text.replace("-", " to ")}.`
        : `${seat === 0 ? "The host" : player} notes (${kind}): ${text}`,
    ShuffleStarted: ({ k, stack, n, steps }) =>
      `Shuffle ${k + 1} begins: ${stackName(stack)}, ${counted(n, "card")}, ` +
      `${counted(steps, "swap")}.`,
    EntropyCommitted: ({ player, k }) =>
      `${player} commits to random bytes for shuffle ${k + 1}.`,
    EntropyClosed: () =>
      "No more commitments are accepted. The house signs the log: from here on the shuffle " +
      "cannot be changed.",
    EntropyRevealed: ({ player }) => `${player} reveals their random bytes.`,
    ShuffleVoided: ({ k }) =>
      `Shuffle ${k + 1} is voided: a player did not reveal their random bytes.`,
    CardsSwapped: ({ step, steps, i, j, card, other }) =>
      i === j
        ? `Swap ${step + 1} of ${steps}: ${card} stays at place ${i + 1}.`
        : `Swap ${step + 1} of ${steps}: ${card} goes from place ${i + 1} to ${j + 1}, ` +
          `${other} from ${j + 1} to ${i + 1}.`,
    hiddenSwap: ({ step, steps, i }) =>
      `Swap ${step + 1} of ${steps}: the card at place ${i + 1} is swapped with a hidden one.`,
    DeckSealed: ({ k, n }) =>
      `Shuffle ${k + 1} is done: each of the ${counted(n, "card")} is sealed in its slot before ` +
      "any is dealt.",
    CardDrawn: ({ player, card, from, below }) =>
      `${player} draws ${card ?? "a card"} from ${stackName(from)}` +
      (below ? `, not the top one.` : "."),
    CardMoved: ({ card, from, to, fromPlayer, toPlayer }) =>
      `${capital(card ?? "a card")} goes from ${ownedStack(from, fromPlayer)} to ` +
      `${ownedStack(to, toPlayer)}.`,
    CardShown: ({ card }) => `${capital(card)} is turned up for all.`,
    CardPeeked: ({ player, card }) => `${player} is shown ${card ?? "a card"}.`,
    StackCut: ({ stack, at }) =>
      `${capital(stackName(stack))} is cut: the cards from place ${at + 1} up go to the bottom.`,
    RoundClosed: ({ round }) => `Round ${round} closes; the house reveals its secret.`,
    fault: ({ line, sentence }) => `The replay stops here: line ${line} is wrong. ${sentence}`,
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

function ownedStack(stack, player) {
  return player === null ? stackName(stack) : `the hand of ${player}`;
}
