/** The dialogs with links to this table: the invitation, and the player's own link; as QR codes. */

import { element, safeText, setText } from "../dom.js";
import { tableUrl } from "../server_url.js";
import { table as texts } from "../texts.js";
import { dialog } from "./dialogs.js";
import { isForOne } from "./game.js";
import { broadcastSentence } from "./selectors.js";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
const QR_CODE = new URL("./qr_code.js", import.meta.url).href;

/** @type {(close: () => void) => void} for a dialog that only the player closes */
const leaveOpen = () => {};

/**
 * Show the link by which others come to this table; nothing at a closed one. With `place` it is for
 * one seat, and with `name` for the player of that name. `opened` gets what closes the dialog.
 *
 * @param {any} page
 * @param {{ place?: number | null, name?: string, opened?: (close: () => void) => void }} [invited]
 */
export async function showInvitation(page, { place = null, name = "", opened = leaveOpen } = {}) {
  const { table } = page;
  if (table.closed) return;
  const secret = table.invite ?? page.invite;
  const by = table.seats.get(table.seat) ?? "";
  const { broadcast = "" } = table.state.rules;
  const given = {
    invite: secret ?? "", by, place: place === null ? "" : String(place), name,
    broadcast: String(broadcast),
  };
  const filled = Object.entries(given).filter(([, value]) => value !== "");
  const intro = table.state.invited && !secret ? texts.inviteUnknown : texts.inviteIntro;
  const title = place === null ? texts.inviteTitle : texts.links.inviteTo({ seat: place });
  const said = [intro, broadcastSentence(broadcast)].filter(Boolean).join(" ");
  await showLink(page, { title, intro: said, shared: true, opened }, new URLSearchParams(filled));
}

/**
 * At a new table show the invitation until the first player comes; not where one plays alone, nor in
 * the page of another site, which brings its own players.
 */
export async function inviteFirst(page) {
  const { table } = page;
  const isOthers = parent !== window || !table.host || table.practice !== null;
  if (isOthers || table.seats.size > 1 || isForOne()) return;
  let stop = () => {};
  const opened = (close) => {
    stop = table.on("changed", () => table.seats.size > 1 && close());
  };
  await showInvitation(page, { opened });
  stop();
}

/** Show the link by which the player continues on another device. */
export async function showOwnLink(page) {
  const { otherDevice: title, otherDeviceIntro: intro } = texts;
  await showLink(page, { title, intro }, new URLSearchParams({ seat: page.table.token }));
}

/**
 * Show a link to this table as a QR code and as text, with a button that copies it. With `shared` the
 * first is the share sheet, on devices that have one.
 */
async function showLink(page, { title, intro, shared = false, opened = leaveOpen }, members) {
  const fragment = members.size === 0 ? "" : `#${members}`;
  const link = tableUrl(page.table.id, fragment);
  const status = element("p", { role: "status", class: "muted" });
  const address = element("code", { class: "address", dir: "ltr", translate: "no" }, link);
  const copy = async () => {
    getSelection().selectAllChildren(address);
    try {
      await navigator.clipboard.writeText(link);
      setText(status, texts.copied);
    } catch {
      setText(status, texts.copyManually);
    }
  };
  const share = async () => {
    try {
      await navigator.share({ title: safeText(page.table.state.name ?? ""), url: link });
    } catch {
      setText(status, ""); // the player has closed the sheet: the link is there as well
    }
  };
  const shares = shared && typeof navigator.share === "function";
  const local = LOOPBACK.includes(location.hostname);
  const contents = () => [
    shares ? element("button", {
      class: "primary share", type: "button", autofocus: true, onclick: share,
    }, texts.links.share) : "",
    local ? element("details", { class: "local" },
      element("summary", {}, texts.inviteLocalOnly), element("p", {}, texts.inviteFromOthers)) : "",
    picture(link, texts.links.qrCode),
    element("p", {}, intro),
    element("div", { class: "line" }, address,
      element("button", {
        class: shares ? null : "primary", type: "button", autofocus: !shares, onclick: copy,
      }, texts.copy)),
    status,
  ];
  await dialog(title, (close) => {
    opened(close);
    return contents();
  });
}

/**
 * The QR code of a link. What makes it is loaded with the first one: where that fails, the link is
 * there as text.
 */
function picture(link, label) {
  const place = element("div", { class: "qr" });
  import(QR_CODE).then(({ qrCode }) => qrCode(link, label))
    .then((code) => place.append(code), () => place.remove());
  return place;
}
