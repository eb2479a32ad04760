/** QR codes of links; a page loads this with its first one. */

import { svgElement } from "../svg.js";

const LIBRARY = new URL("../lean-qr/lean-qr.js", import.meta.url).href;
const QUIET_ZONE = 4; // modules

/**
 * The QR code of a link, with its quiet zone. The page makes it, because an own link holds the token
 * of a seat.
 *
 * @param {string} link
 * @param {string} label its text for readers
 * @returns {Promise<Element>}
 */
export async function qrCode(link, label) {
  const { correction, generate } = await import(LIBRARY);
  const code = generate(link, { minCorrectionLevel: correction.M });
  const size = code.size + 2 * QUIET_ZONE;
  const squares = [];
  for (let y = 0; y < code.size; y++) {
    for (let x = 0; x < code.size; x++) {
      if (code.get(x, y)) squares.push(`M${x + QUIET_ZONE} ${y + QUIET_ZONE}h1v1h-1z`);
    }
  }
  return svgElement("svg", {
    viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label,
  }, svgElement("path", { d: squares.join("") }));
}
