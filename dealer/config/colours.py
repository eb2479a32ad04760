"""Colours of the pages: the palette from the settings, with its contrasts checked (WCAG 2)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dealer.errors import ConfigurationError

COLOURS = ("accent", "accent-ink", "felt")
"""The main buttons, the text on them, and the table's surface."""

CONTRAST = 4.5
"""Least contrast of text (WCAG 2.2, 1.4.3)."""

_BLACK, _WHITE = "#000000", "#ffffff"
_FELT_INK = "#fbf8ee"
_COLOUR = re.compile(r"#[0-9a-f]{6}")


def palette(values: Iterable[str], *, of: str) -> dict[str, str]:
    """CSS custom properties from colours like `felt=#1d4b3a`; `of` is the name of the setting.

    A colour that is not given keeps the page's own. Raises ConfigurationError for another form, and
    for colours on which text could not be read.
    """
    given: dict[str, str] = {}
    for value in values:
        name, _, colour = value.partition("=")
        colour = colour.lower()
        if name not in COLOURS or name in given or not _COLOUR.fullmatch(colour):
            raise ConfigurationError(
                f"{of} must be NAME=#RRGGBB, like felt=#1d4b3a, once for each name; the names are "
                f"{', '.join(COLOURS)}. It is {value!r}."
            )
        given[name] = colour
    properties: dict[str, str] = {}
    if "accent-ink" in given and "accent" not in given:
        raise ConfigurationError(f"{of} accent-ink needs the colour accent that it is read on.")
    if "accent" in given:
        properties |= _buttons(given["accent"], given.get("accent-ink"), of)
    if "felt" in given:
        properties |= _table(given["felt"], of)
    return properties


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours `#rrggbb`, 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _buttons(accent: str, ink: str | None, of: str) -> dict[str, str]:
    if ink is None:
        ink = max((_WHITE, _BLACK), key=lambda ink: contrast(ink, accent))
    _require(contrast(accent, ink), f"{of}: text of {ink} on buttons of {accent}", "")
    return {"--accent": accent, "--accent-ink": ink}


def _table(felt: str, of: str) -> dict[str, str]:
    muted = _mix(_FELT_INK, felt, 0.2)
    _require(
        contrast(felt, muted), f"{of}: light text on a table of {felt}", "; choose a darker felt"
    )
    return {
        "--felt": felt,
        "--felt-deep": _mix(felt, _BLACK, 0.28),
        "--felt-line": _mix(felt, _FELT_INK, 0.45),
        "--felt-ink": _FELT_INK,
        "--felt-ink-muted": muted,
    }


def _require(found: float, what: str, advice: str) -> None:
    if found < CONTRAST:
        # Rounded down: 4.499 is not 4.5.
        raise ConfigurationError(
            f"{what} could not be read: the contrast is {int(found * 100) / 100}:1, and must be "
            f"{CONTRAST}:1 or more{advice}."
        )


def _luminance(colour: str) -> float:
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _mix(one: str, other: str, share: float) -> str:
    """`one` with this share of `other`."""
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue
