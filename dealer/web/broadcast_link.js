/**
 * The page of a broadcast without a link, in the browser of the table's host: it shows the address
 * with the link, and takes it back. The host may be a player, so it shows nothing of the table.
 */

import { savedOf } from "./audit/saved.js";
import { byId, element, setText } from "./dom.js";
import { fetchPatiently, serverUrl, tableUrl } from "./server_url.js";
import { audit, table } from "./texts.js";

const words = audit.broadcast;

/**
 * Let the host make and take back the link of a table; to others say that there is none.
 *
 * @param {string} id
 * @param {(...sentence: (string | Node)[]) => void} say shows one sentence on the page
 */
export async function showToHost(id, say) {
  const { link } = await ask(id, "broadcast.link");
  if (link === undefined) return say(words.invalid);
  const sayTitled = (...sentence) => {
    say(...sentence);
    setText(byId("name"), table.broadcastLink);
  };
  sayTitled(words.yours, " ", element("code", { dir: "ltr" }, tableUrl(id, `/broadcast#${link}`)),
    button(words.takeBack, async () => {
      const { revoked } = await ask(id, "broadcast.revoke");
      if (revoked === undefined) return; // the button is there as before
      sayTitled(words.takenBack, " ", button(words.makeNew, () => showToHost(id, say)));
    }));
}

const button = (label, onclick) => element("button", { type: "button", onclick }, label);

/** The result of a method by a token that this browser has as the table's host; {} without one. */
async function ask(id, method) {
  for (const token of savedOf(id).tokens) {
    const request = { jsonrpc: "2.0", id: 1, method, params: { table: id, token } };
    const sent = { headers: { "content-type": "application/json" }, body: JSON.stringify(request) };
    const answer = await fetchPatiently(serverUrl("rpc"), { method: "POST", ...sent });
    const result = answer?.ok ? (await answer.json()).result : undefined;
    if (result !== undefined) return result;
  }
  return {};
}
