"""Pictures of the cards, under the names of the original: `AS.svg`, `0D.png`, `X1.svg`, `back.png`.

The vector pictures are made here, with the court cards' pictures of the pages. The folder
`pictures` has the same as PNG, which `tests/browser/deck_pictures.py` draws with a browser.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from dealer.gateway.decks.codes import ACE_OF_DIAMONDS, ALL, BACK, code_of
from dealer.gateway.http.responses import PICTURE

FOLDER = "/static/img/"
WIDTH, HEIGHT = 226, 314
"""Pixels of a picture, as of the original's."""

NAMES = frozenset((*ALL, BACK, ACE_OF_DIAMONDS))
PNG = "image/png"

_NAME = re.compile(r"(?P<name>\w+)\.(?P<kind>svg|png)", re.IGNORECASE)
_OTHERS = {BACK: BACK, ACE_OF_DIAMONDS.lower(): "AD"}
_RED, _BLACK = "#c8102e", "#1a1a1a"
_INK = {"S": _BLACK, "C": _BLACK, "H": _RED, "D": _RED, "1": _BLACK, "2": _RED}

# Each in a square from -10 to 10.
_SUITS = {
    "H": "M0 9C-4 4-9 0-9-4-9-7-7-9-4.6-9-2.6-9-.8-8 0-6 .8-8 2.6-9 4.6-9 7-9 9-7 9-4 9 0 4 4 0 9Z",
    "D": "M0-10 7 0 0 10-7 0Z",
    "S": "M0-10C4-5 9-1 9 3 9 5.5 7 7 5 7 3.3 7 2 6.3 1 5 1.2 7.5 2 9 3.5 10H-3.5C-2 9"
    "-1.2 7.5-1 5-2 6.3-3.3 7-5 7-7 7-9 5.5-9 3-9-1-4-5 0-10Z",
    "C": "M0-10A4.2 4.2 0 0 1 3-3A4.2 4.2 0 1 1 1 4C1.2 7 2 9 3.5 10H-3.5C-2 9-1.2 7"
    "-1 4A4.2 4.2 0 1 1-3-3A4.2 4.2 0 0 1 0-10Z",
}

_CORNERS = ((72, 66), (154, 66), (72, 248), (154, 248))
_SIDES = ((72, 157), (154, 157))
_EIGHT = (*_CORNERS, (72, 127), (154, 127), (72, 187), (154, 187))
_PIPS: dict[str, tuple[tuple[int, int], ...]] = {
    "A": ((113, 157),),
    "2": ((113, 66), (113, 248)),
    "3": ((113, 66), (113, 157), (113, 248)),
    "4": _CORNERS,
    "5": (*_CORNERS, (113, 157)),
    "6": (*_CORNERS, *_SIDES),
    "7": (*_CORNERS, *_SIDES, (113, 111)),
    "8": (*_CORNERS, *_SIDES, (113, 111), (113, 203)),
    "9": (*_EIGHT, (113, 157)),
    "0": (*_EIGHT, (113, 96), (113, 218)),
}
_COURTS = "JQK"


def picture(file: str) -> tuple[bytes, str] | None:
    """The bytes and the media type of a picture, by its file name; None if there is none.

    A name is the code of a card as clients write it, and in any case, like `10h.png`.
    """
    found = _NAME.fullmatch(file)
    name = found and (_OTHERS.get(found["name"].lower()) or code_of(found["name"]))
    if found is None or name is None:
        return None
    return (vector(name), PICTURE) if found["kind"].lower() == "svg" else (_pixels(name), PNG)


@cache
def _pixels(name: str) -> bytes:
    return (resources.files("dealer.gateway.decks") / "pictures" / f"{name}.png").read_bytes()


@cache
def vector(name: str) -> bytes:
    """The SVG of a card by its code, or of the back."""
    content = _back() if name == BACK else _face(name)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12" fill="#fff" '
        f'stroke="#888"/>{content}</svg>'
    ).encode()


def _face(code: str) -> str:
    value, suit = code[0], code[1]
    corner = _corner(value, suit)
    turned = f'<g transform="rotate(180 {WIDTH / 2} {HEIGHT / 2})">{corner}</g>'
    return _middle(value, suit) + corner + turned


def _corner(value: str, suit: str) -> str:
    ink = _INK[suit]
    if value == "X":
        return "".join(
            _text(letter, 18, 30 + 21 * place, 20, ink) for place, letter in enumerate("JOKER")
        )
    return _text("10" if value == "0" else value, 21, 36, 30, ink) + _pip(suit, 21, 56, 0.95)


def _middle(value: str, suit: str) -> str:
    if value == "X":
        return _star(_INK[suit])
    if value in _COURTS:
        return _court(value + suit.lower())
    scale = 3.6 if value == "A" else 1.75
    return "".join(_pip(suit, x, y, scale if y <= HEIGHT / 2 else -scale) for x, y in _PIPS[value])


def _court(code: str) -> str:
    """The picture of a court card, in its frame."""
    drawn = (resources.files("dealer") / "web" / "courts" / f"{code}.svg").read_text("utf-8")
    placed = drawn.replace("<svg ", '<svg x="41" y="32" width="144" height="250" ', 1)
    frame = '<rect x="41" y="32" width="144" height="250" fill="none" stroke="#335"/>'
    return placed + frame


def _star(ink: str) -> str:
    return (
        f'<path transform="translate(113 157) scale(5.5)" fill="{ink}" d="M0-11 2.5-3.4H10.5L4 '
        '1.3 6.5 9 0 4.2-6.5 9-4 1.3-10.5-3.4H-2.5Z"/>'
    )


def _pip(suit: str, x: float, y: float, scale: float) -> str:
    place = f"translate({x:g} {y:g}) scale({abs(scale):g} {scale:g})"
    return f'<path transform="{place}" fill="{_INK[suit]}" d="{_SUITS[suit]}"/>'


def _text(text: str, x: int, y: int, size: int, ink: str) -> str:
    spacing = ' letter-spacing="-3"' if len(text) > 1 else ""
    return (
        f'<text x="{x}" y="{y}" font-family="Georgia,\'DejaVu Serif\',serif" font-size="{size}" '
        f'font-weight="bold" text-anchor="middle" fill="{ink}"{spacing}>{text}</text>'
    )


def _back() -> str:
    """A lattice in a frame."""
    lines = "".join(f"M{x} 14 {x + 286} 300M{x + 286} 14 {x} 300" for x in range(-286, WIDTH, 22))
    inner = f'x="14" y="14" width="{WIDTH - 28}" height="{HEIGHT - 28}" rx="6"'
    return (
        f'<clipPath id="c"><rect {inner}/></clipPath><rect {inner} fill="#23527c"/>'
        f'<path clip-path="url(#c)" d="{lines}" fill="none" stroke="#7fa6cc" stroke-width="2"/>'
    )
