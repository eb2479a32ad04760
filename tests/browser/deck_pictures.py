"""Draws the PNG pictures of the cards from the vector ones with a browser.

After a change of an SVG file in `dealer/web/cards`, run `python -m tests.browser.deck_pictures`.
"""

from __future__ import annotations

import shutil
import struct
import zlib
from base64 import b64decode
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from tests.browser.conftest import FLAGS

FOLDER = Path(__file__).parents[2] / "dealer" / "web" / "cards"
SIZE = (226, 314)
"""Pixels of a picture, as of the original's."""

COLOURS = 48
"""Colours of a picture; with more the files are larger, and look the same."""

PIXELS = """async ([drawing, width, height]) => {
  const image = new Image();
  image.src = "data:image/svg+xml," + encodeURIComponent(drawing);
  await image.decode();
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  canvas.drawImage(image, 0, 0, width, height);
  const { data } = canvas.getImageData(0, 0, width, height);
  return btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(""));
}"""


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        page = browser.new_page()
        for vector in sorted(FOLDER.glob("*.svg")):
            given = [vector.read_text("utf-8"), *SIZE]
            pixels = np.frombuffer(b64decode(page.evaluate(PIXELS, given)), np.uint8)
            vector.with_suffix(".png").write_bytes(png(pixels.reshape(-1, 4), *SIZE))
        browser.close()


def png(pixels: np.ndarray, width: int, height: int) -> bytes:
    """A picture of RGBA pixels with a palette of its `COLOURS` most frequent colours."""
    colours, place, counts = np.unique(
        pixels.astype(np.int32), axis=0, return_inverse=True, return_counts=True
    )
    palette = colours[np.argsort(-counts, kind="stable")[:COLOURS]]
    nearest = ((colours[:, None, :] - palette[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
    rows = nearest[place.reshape(height, width)].astype(np.uint8)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, data)
        for kind, data in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            (b"PLTE", palette[:, :3].astype(np.uint8).tobytes()),
            (b"tRNS", palette[:, 3].astype(np.uint8).tobytes()),
            (b"IDAT", zlib.compress(lines.tobytes(), 9)),
            (b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    main()
