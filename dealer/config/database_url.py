"""The database's address: its password from a file, and the address without its password."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from dealer.errors import ConfigurationError

PASSWORD_FILE_VARIABLE = "DEALER_DATABASE_PASSWORD_FILE"


def with_password(url: str, environ: Mapping[str, str]) -> str:
    """The address, with the password from the file that the environment names if it has none.

    Raises ConfigurationError if that file cannot be read or is empty.
    """
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
