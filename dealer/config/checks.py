"""Checks of the values of settings: each raises ConfigurationError, which names the flag."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from dealer.config.colours import palette
from dealer.config.logo import read_logo
from dealer.errors import ConfigurationError
from dealer.packs.catalogue import read_folders

Check = Callable[[str, Any], None]
"""Takes the flag and the value, which is not None."""

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


def check_logo(flag: str, value: Path) -> None:
    read_logo(value, of=flag)


def check_colours(flag: str, values: tuple[str, ...]) -> None:
    palette(values, of=flag)


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


def check_age(flag: str, value: str) -> None:
    age_ms(value, of=flag)


def age_ms(text: str, *, of: str) -> int:
    """Milliseconds of an age like 90d, 36h or 30m; ConfigurationError, naming `of`, otherwise."""
    match = _AGE.fullmatch(text)
    if match is None and text != "0":
        raise ConfigurationError(
            f"{of} must be an age like 90d, 36h or 30m, or 0 for never, not {text!r}."
        )
    return 0 if match is None else int(match[1]) * _AGE_UNITS[match[2]]
