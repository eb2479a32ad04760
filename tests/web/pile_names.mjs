/** Names of piles on standard input, as JSON; prints the plain name and the title of each. */

import { readFileSync } from "node:fs";

import { plainName, writtenTitle } from "../../dealer/web/table/pile_names.js";

const names = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(names.map((one) => [plainName(one), writtenTitle(plainName(one))])));
