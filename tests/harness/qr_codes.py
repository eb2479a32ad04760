"""Reading QR codes, with a library that shares nothing with the page that draws them."""

from __future__ import annotations

import re

import numpy as np
import zxingcpp

PIXELS = 4
"""Pixels of a module's side."""

_SQUARE = re.compile(r"M(\d+) (\d+)h1v1h-1z")


def read_modules(modules: list[list[bool]]) -> str:
    """The text of a code, from its modules by row and column, with a quiet zone; "" if none."""
    dark = np.array(modules, dtype=bool)
    image = np.kron(np.where(dark, 0, 255), np.ones((PIXELS, PIXELS))).astype(np.uint8)
    found = zxingcpp.read_barcodes(image)
    return found[0].text if found else ""


def read_path(path: str, size: int) -> str:
    """The text of a code that a page has drawn as an SVG path of `size` × `size` modules."""
    modules = [[False] * size for _ in range(size)]
    for x, y in _SQUARE.findall(path):
        modules[int(y)][int(x)] = True
    return read_modules(modules)
