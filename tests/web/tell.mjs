// Tells the story of a bundle as the audit page has it: the path of a bundle in, JSON out.

import { readFileSync } from "node:fs";

import * as link from "../../dealer/web/audit/link.js";
import { roundsOf, tell, visits } from "../../dealer/web/audit/story.js";
import { ABOVE, SPECTATOR, seen } from "../../dealer/web/audit/views.js";
import { linesOf, verify } from "../../dealer/web/verify.js";

const lines = linesOf(readFileSync(process.argv[2]));
const rounds = roundsOf(lines, await verify(lines));

const told = rounds.map((round) => ({
  number: round.number,
  state: round.state,
  moments: tell(round).map((moment) => ({
    version: moment.version,
    type: moment.type,
    link: link.write(round, moment, ABOVE),
    leads: link.versionFor(round, link.read(link.write(round, moment, ABOVE))),
    views: [ABOVE, SPECTATOR, ...moment.seats.keys()].map((viewer) => ({
      viewer,
      stacks: Object.fromEntries(
        [...seen(round, moment, viewer)].map(([name, cards]) => [
          name, cards.map(({ card, face }) => [card, face]),
        ]),
      ),
    })),
  })),
  shuffles: (round.shuffles ?? []).map((shuffle) => ({
    k: shuffle.k, voided: shuffle.voided, sealed: shuffle.sealed,
    swaps: shuffle.swaps, visits: visits(shuffle),
  })),
}));
process.stdout.write(JSON.stringify(told));
