/** Texts on standard input, as JSON; prints what the pages and the verifier show of each. */

import { readFileSync } from "node:fs";

import { safeText } from "../../dealer/web/dom.js";
import { safeText as safeTextOfVerifier } from "../../dealer/web/verify.js";

const texts = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(texts.map((one) => [safeText(one), safeTextOfVerifier(one)])));
