"""SVG pictures of an experiment: a histogram, and a heat map of places and cards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from dealer.errors import amount
from dealer.lab.experiment import Tally
from dealer.lab.report import Histogram

_FONT = "font-family='system-ui,sans-serif' font-size='12' fill='#222'"
_LEVELS = 8
_SEEN = 3.5
_BLOCKS = 104
_MAP = 416
_LEFT, _TOP = 56, 56
_SELDOM, _OFTEN = (33, 102, 172), (178, 24, 43)


def bars(shown: Histogram, heading: str) -> str:
    """An SVG of a histogram; a dark line marks the expected height of each bar."""
    step, height = max(24, 640 // max(len(shown.bars), 1)), 220
    most = max((max(bar.times, bar.expected) for bar in shown.bars), default=0) or 1
    base, wide = _TOP + height, step * len(shown.bars)
    parts = []
    for number, bar in enumerate(shown.bars):
        x, tall = _LEFT + number * step, round(bar.times / most * height, 1)
        mark = round(base - bar.expected / most * height, 1)
        parts += [
            f"<path d='M{x + 2} {base}v{-tall}h{step - 4}v{tall}z' fill='#6b9ac4'>"
            f"<title>{escape(bar.label)}: {bar.times}, fair {bar.expected:.1f}</title></path>",
            f"<path d='M{x} {mark}h{step}' stroke='#222' stroke-width='1.5'/>",
            _text(0, 0, bar.label, f"text-anchor='end' transform='translate({x + step / 2 + 4},"
                                   f"{base + 12}) rotate(-60)'"),
        ]  # fmt: skip
    for part in (0.5, 1.0):
        y = base - height * part
        parts.append(_text(_LEFT - 6, y + 4, f"{most * part:,.0f}", "text-anchor='end'"))
    parts.append(f"<path d='M{_LEFT} {base}h{wide}' stroke='#222'/>")
    if shown.bars:
        parts.append(_text(_LEFT + wide + 4, mark + 4, "fair"))
    return _page(_LEFT + wide + 36, base + 90, heading, shown.title, parts)


def heat(tally: Tally, heading: str) -> str:
    """An SVG heat map of place × card: red is too frequent, blue too rare, white as expected.

    Rows are the places after the shuffle, the bottom place last; columns are the places before it.
    Deviations up to three and a half standard deviations are white. More than 104 cards are grouped
    in blocks.
    """
    off, noise = _blocks(tally)
    rows, columns = off.shape
    cell = max(2, _MAP // max(rows, columns, 1))
    shown = np.abs(off) > _SEEN * noise
    scale = min(1.0, max(0.1, float(np.abs(off[shown]).max()) if shown.any() else 0.1))
    levels = np.where(shown, np.clip(np.ceil(np.abs(off) / scale * _LEVELS), 1, _LEVELS), 0)
    levels = (levels * np.sign(off)).astype(int)
    wide, tall = columns * cell, rows * cell
    parts = [
        f"<g transform='translate({_LEFT},{_TOP}) scale({cell}) translate(0,.5)' fill='none' "
        "shape-rendering='crispEdges'>",
        *_runs(levels),
        "</g>",
        f"<path d='M{_LEFT} {_TOP}h{wide}v{tall}h{-wide}z' fill='none' stroke='#888'/>",
        _text(_LEFT - 6, _TOP + 10, "top", "text-anchor='end'"),
        _text(_LEFT + wide / 2, _TOP + tall + 34, "where the card lay before",
              "text-anchor='middle'"),
        _text(0, 0, "where it lies now",
              f"text-anchor='middle' transform='translate(18,{_TOP + tall / 2}) rotate(-90)'"),
        _text(_LEFT, _TOP + tall + 16, "0"),
        _text(_LEFT + wide, _TOP + tall + 16, str(max(tally.n - 1, 0)), "text-anchor='end'"),
        *_legend(_LEFT + wide + 24, scale),
    ]  # fmt: skip
    if tally.k == tally.n:
        parts.append(_text(_LEFT - 6, _TOP + tall, "0", "text-anchor='end'"))
    many = f"{amount(tally.shuffles, 'shuffle')} of {amount(tally.n, 'card')}"
    title = f"{many}: which card comes to which place"
    return _page(_LEFT + wide + 170, max(_TOP + tall + 48, _TOP + 200), heading, title, parts)


def _blocks(tally: Tally) -> tuple[NDArray[np.float64], float]:
    """Relative deviation of each cell, the top place first, and its standard deviation if fair."""
    cells = tally.cells[::-1] if tally.k == tally.n else tally.cells
    side = max(1, -(-tally.n // _BLOCKS))
    tops, lefts = (np.arange(0, length, side) for length in cells.shape)
    blocks = np.add.reduceat(np.add.reduceat(cells, tops, axis=0), lefts, axis=1)
    tall, wide = cells.shape
    areas = np.outer(np.diff(tops, append=tall), np.diff(lefts, append=wide))
    fair = areas * (tally.shuffles / max(tally.n, 1))
    return blocks / fair - 1, 1 / math.sqrt(float(fair.max(initial=1.0)))


def _runs(levels: NDArray[np.int_]) -> Iterator[str]:
    """One path for each colour; adjacent cells of a row are one line."""
    for level in range(-_LEVELS, _LEVELS + 1):
        strokes = []
        for y, row in enumerate(levels == level):
            edges = np.flatnonzero(np.diff(row, prepend=False, append=False))
            strokes += [
                f"M{start} {y}h{end - start}"
                for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
            ]
        if level and strokes:
            yield f"<path stroke='{_colour(level)}' d='{''.join(strokes)}'/>"


def _legend(x: int, scale: float) -> Iterator[str]:
    for number, level in enumerate(range(_LEVELS, -_LEVELS - 1, -1)):
        y = _TOP + number * 10
        yield f"<path d='M{x} {y}h14v10h-14z' fill='{_colour(level)}'/>"
    yield f"<path d='M{x} {_TOP}h14v{20 * _LEVELS + 10}h-14z' fill='none' stroke='#888'/>"
    more = " or more" if scale == 1 else ""
    for number, label in (
        (0, f"+{scale:.0%}{more}"),
        (_LEVELS, "fair"),
        (2 * _LEVELS, f"−{scale:.0%}"),
    ):
        yield _text(x + 20, _TOP + number * 10 + 9, label)


def _colour(level: int) -> str:
    end = _OFTEN if level > 0 else _SELDOM
    part = abs(level) / _LEVELS
    return "#" + "".join(f"{round(255 + (channel - 255) * part):02x}" for channel in end)


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}' {more}>{escape(words)}</text>"


def _page(wide: float, tall: float, heading: str, title: str, parts: Sequence[str]) -> str:
    """A complete SVG document with a white background."""
    return "\n".join(
        (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {wide:g} {tall:g}' "
            f"width='{wide:g}' height='{tall:g}' {_FONT}>",
            f"<path d='M0 0h{wide:g}v{tall:g}H0z' fill='#fff'/>",
            _text(_LEFT, 24, heading, "font-size='16' font-weight='600'"),
            _text(_LEFT, 42, title),
            *parts,
            "</svg>\n",
        )
    )
