"""Checks of the values of settings: each raises ConfigurationError, which names the flag.

The colours of the pages are checked for contrast (WCAG 2), and the database's password may be in a
file of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dealer.errors import ConfigurationError, amount
from dealer.packs.catalogue import read_folders

Check = Callable[[str, Any], object]
"""Takes the flag and the value, which is not None."""

PASSWORD_FILE_VARIABLE = "DEALER_DATABASE_PASSWORD_FILE"

LOGO_KINDS = (".svg", ".png", ".jpg", ".webp")
LOGO_MAX = 128 * 1024

_HOST_NAME = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?\.?")
# The host-source of CSP 3 without wildcards; it has no form for IPv6 addresses.
_ORIGIN = re.compile(r"https?://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::(?P<port>[1-9][0-9]{0,4}))?")
_PATH = re.compile(r"/(?:(?!\.{1,2}/)[A-Za-z0-9._~-]+/)*")
_OWN_PATHS = frozenset(
    ("api", "audit", "client", "feed", "games", "packs", "rpc", "static", "tables", "web", "ws")
)
TITLE_MAX = 64
_AGE = re.compile(r"([0-9]{1,6})([dhm])")
_AGE_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}

COLOURS = ("accent", "accent-ink", "felt")
"""The main buttons, the text on them, and the table's surface."""

CONTRAST = 4.5
"""Least contrast of text (WCAG 2.2, 1.4.3)."""

_QUOTES = "\"'`“”„‘’«»"
_BLACK, _WHITE = "#000000", "#ffffff"
_FELT_INK = "#fbf8ee"
_COLOUR = re.compile(r"#[0-9a-f]{6}")


def check_unquoted(what: str, text: str) -> None:
    """Refuse a value in quotation marks, as an env file may pass them on."""
    if text and (text[0] in _QUOTES or text[-1] in _QUOTES):
        raise ConfigurationError(
            f"{what} is in quotation marks: leave them out. No shell removes them from a file for "
            "Docker's --env-file."
        )


def at_least(least: int) -> Check:
    def check(flag: str, value: int) -> None:
        if value < least:
            raise ConfigurationError(f"{flag} must be {least} or more.")

    return check


def check_port(flag: str, value: int) -> None:
    if not 0 <= value <= 65535:
        raise ConfigurationError(f"{flag} must be a port, a number from 0 to 65535, not {value}.")


def check_house(flag: str, value: str) -> None:
    if not value or "+" in value or not value.isprintable() or value != "".join(value.split()):
        raise ConfigurationError(
            f"{flag} must be a name without spaces and without +, like cards.example.org."
        )


def check_host_names(flag: str, values: tuple[str, ...]) -> None:
    from dealer.gateway.net.host_names import ascii_name

    for name in values:
        if not _HOST_NAME.fullmatch(ascii_name(name)):
            raise ConfigurationError(
                f"{flag} must be a name like cards.example.org, without scheme, port or path, "
                f"not {name!r}."
            )


def check_origins(flag: str, values: tuple[str, ...]) -> None:
    from dealer.gateway.net.host_names import EVERY, normal_origin

    for origin in values:
        if origin != EVERY and normal_origin(origin) is None:
            raise ConfigurationError(
                f"{flag} must be an origin like https://game.example.org or http://localhost:3000, "
                f"without path and slash at the end, or *, not {origin!r}."
            )


def check_path(flag: str, value: str) -> None:
    if not _PATH.fullmatch(value):
        raise ConfigurationError(
            f"{flag} must be a path like /cards/, with a slash at both ends, and with letters, "
            f"digits and -._~ between slashes, not {value!r}."
        )
    first = value.split("/")[1]
    if first in _OWN_PATHS:
        raise ConfigurationError(
            f"{flag} must not begin with /{first}/, because the server has addresses of its own "
            "there; choose another name, like /cards/."
        )


def check_frame_ancestors(flag: str, values: tuple[str, ...]) -> None:
    from dealer.gateway.net.host_names import normal_origin

    for origin in values:
        found = _ORIGIN.fullmatch(normal_origin(origin) or origin)
        if not found or not 0 < int(found["port"] or 1) <= 65535:
            raise ConfigurationError(
                f"{flag} must be an origin like https://game.example.org or http://localhost:3000, "
                f"without path, wildcard or slash at the end, not {origin!r}."
            )


def check_title(flag: str, value: str) -> None:
    if not value.isprintable() or not 0 < len(value.strip()) <= TITLE_MAX:
        raise ConfigurationError(f"{flag} must have 1 to {TITLE_MAX} printable characters.")


def check_games(packs: Path | None, games: Path | None) -> None:
    """The folders of packs and of games, which may use those packs."""
    if packs is not None or games is not None:
        read_folders(packs, games)


def check_networks(flag: str, values: tuple[str, ...]) -> None:
    for network in values:
        try:
            ip_network(network, strict=False)
        except ValueError:
            raise ConfigurationError(
                f"{flag} must be an address or a network like 10.0.0.0/8, not {network!r}."
            ) from None


def check_issuer(issuer: str | None, audience: str | None, jwks: str | None) -> None:
    """The settings of an issuer, which are given together; `jwks` may be the path of a file."""
    if bool(issuer) != bool(audience):
        raise ConfigurationError("--issuer and --audience are given together, or neither.")
    if jwks and not issuer:
        raise ConfigurationError("--jwks needs --issuer and --audience.")
    if not issuer:
        return
    # Imports the websocket library, which a page of help does not need.
    from dealer.gateway.identity import check_url, is_url

    if not jwks:
        check_url(issuer, of="--issuer")
    if jwks and is_url(jwks):
        check_url(jwks, of="--jwks")


def age_ms(flag: str, text: str) -> int:
    """Milliseconds of an age like 90d, 36h or 30m, or 0."""
    match = _AGE.fullmatch(text)
    if match is None and text != "0":
        raise ConfigurationError(
            f"{flag} must be an age like 90d, 36h or 30m, or 0 for never, not {text!r}."
        )
    return 0 if match is None else int(match[1]) * _AGE_UNITS[match[2]]


def read_logo(flag: str, path: Path) -> bytes:
    """The bytes of an image file that can be a logo."""
    if path.suffix.lower() not in LOGO_KINDS:
        raise ConfigurationError(
            f"{flag} must be an image whose name ends with {', '.join(LOGO_KINDS)}, not {path}."
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{flag}: {path} cannot be read: {error.strerror}.") from None
    if not 0 < len(data) <= LOGO_MAX:
        raise ConfigurationError(
            f"{flag}: {path} has {amount(len(data), 'byte')}; a logo has 1 to {LOGO_MAX} bytes, "
            "because every visitor's browser loads it."
        )
    return data


def palette(flag: str, values: Iterable[str]) -> dict[str, str]:
    """CSS custom properties from colours like `felt=#1d4b3a`.

    A colour that is not given keeps the page's own. Raises ConfigurationError for another form, and
    for colours on which text could not be read.
    """
    given: dict[str, str] = {}
    for value in values:
        name, _, colour = value.partition("=")
        colour = colour.lower()
        if name not in COLOURS or name in given or not _COLOUR.fullmatch(colour):
            raise ConfigurationError(
                f"{flag} must be NAME=#RRGGBB, like felt=#1d4b3a, once for each name; the names "
                f"are {', '.join(COLOURS)}. It is {value!r}."
            )
        given[name] = colour
    properties: dict[str, str] = {}
    if "accent-ink" in given and "accent" not in given:
        raise ConfigurationError(f"{flag} accent-ink needs the colour accent that it is read on.")
    if "accent" in given:
        properties |= _buttons(given["accent"], given.get("accent-ink"), flag)
    if "felt" in given:
        properties |= _table(given["felt"], flag)
    return properties


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours `#rrggbb`, 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _buttons(accent: str, ink: str | None, flag: str) -> dict[str, str]:
    if ink is None:
        ink = max((_WHITE, _BLACK), key=lambda ink: contrast(ink, accent))
    _require(contrast(accent, ink), f"{flag}: text of {ink} on buttons of {accent}", "")
    return {"--accent": accent, "--accent-ink": ink}


def _table(felt: str, flag: str) -> dict[str, str]:
    muted = _mix(_FELT_INK, felt, 0.2)
    _require(
        contrast(felt, muted), f"{flag}: light text on a table of {felt}", "; choose a darker felt"
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
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def with_password(url: str, environ: Mapping[str, str]) -> str:
    """The address, with the password from the file that the environment names if it has none.

    Raises ConfigurationError if that file cannot be read or is empty.
    """
    check_unquoted("The database's address", url)
    name = environ.get(PASSWORD_FILE_VARIABLE)
    scheme, _, rest = url.partition("://")
    user, at, place = rest.partition("@")
    if not name or not scheme.startswith("postgres") or not at or not user or ":" in user:
        return url
    try:
        password = Path(name).read_text().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or "it is not text"
        raise ConfigurationError(
            f"{PASSWORD_FILE_VARIABLE} names {name}, which cannot be read: {what}."
        ) from None
    if not password:
        raise ConfigurationError(f"{PASSWORD_FILE_VARIABLE} names {name}, which is empty.")
    return f"{scheme}://{user}:{quote(password, safe='')}@{place}"


def masked(url: str) -> str:
    """A database's address without its password."""
    scheme, slashes, rest = url.partition("://")
    if scheme.startswith("sqlite"):
        return url
    place, at, host = rest.rpartition("@")
    user, colon, _ = place.partition(":")
    shown = f"{scheme}{slashes}{user}{':***' if colon else ''}{at}{host}"
    before, question, options = shown.partition("?")
    pairs = [
        f"{name}=***" if "pass" in name.lower() and name != "passfile" else pair
        for pair in options.split("&")
        for name in [pair.partition("=")[0]]
    ]
    return before + question + "&".join(pairs)
