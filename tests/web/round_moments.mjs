// Prints the moments of a bundle's rounds, as the audit page builds them, as JSON.

import { readFileSync } from "node:fs";

import * as permalink from "../../dealer/web/audit/permalink.js";
import { momentsOf, roundsOf, swapCounts } from "../../dealer/web/audit/moments.js";
import { ALL_CARDS, SPECTATOR, visibleStacks } from "../../dealer/web/audit/visibility.js";
import { linesOf, verify } from "../../dealer/web/verify.js";

const lines = linesOf(readFileSync(process.argv[2]));
const rounds = roundsOf(lines, await verify(lines));

const output = rounds.map((round) => ({
  number: round.number,
  state: round.state,
  moments: momentsOf(round).map((moment) => ({
    version: moment.version,
    type: moment.type,
    public: moment.public,
    players: Object.fromEntries(moment.seats),
    link: permalink.format(round, moment, ALL_CARDS),
    target: permalink.versionFor(
      round, permalink.parse(permalink.format(round, moment, ALL_CARDS)),
    ),
    views: [ALL_CARDS, SPECTATOR, ...moment.seats.keys()].map((viewer) => ({
      viewer,
      stacks: Object.fromEntries(
        [...visibleStacks(round, moment, viewer)].map(([name, cards]) => [
          name, cards.map(({ card, face }) => [card, face]),
        ]),
      ),
    })),
  })),
  shuffles: (round.shuffles ?? []).map((shuffle) => ({
    k: shuffle.k, voided: shuffle.voided, sealed: shuffle.sealed,
    swaps: shuffle.swaps, counts: swapCounts(shuffle),
  })),
}));
process.stdout.write(JSON.stringify(output));
