"""Database addresses: `sqlite:///PATH` and `postgresql://…`, percent-encoded as in any URL.

The plain path of an SQLite file is one, too, without an encoding.

An address either names its database in full or is refused: what is not understood, such as an
unknown parameter, is never left out, because it may have been meant as part of the name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from dealer.errors import ConfigurationError

_POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")
_SQLITE = re.compile(r"sqlite(?:\+\w+)?://([^/?#]*)(?:/(.*))?", re.DOTALL)
_LIKE_A_URL = re.compile(r"(?:sqlite|postgres)[\w+]*:|[^/]*@", re.IGNORECASE)
_ENCODED = {"?": "%3F", "#": "%23", "%": "%25"}
_NOT_ENCODED = re.compile(r"[?#]|%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def is_postgres(url: str) -> bool:
    """Whether this is the address of a PostgreSQL database; False for any other text."""
    return url.partition("://")[0] in _POSTGRES_SCHEMES


def not_encoded(text: str) -> str | None:
    """How to write the first character of a part of an address that must be encoded; or None."""
    found = _NOT_ENCODED.search(text)
    return None if found is None else f"{found[0]} as {_ENCODED[found[0]]}"


def sqlite_address(file: Path) -> str:
    """The address that names this file."""
    return f"sqlite:///{quote(os.fsencode(file))}"


def database_file(url: str) -> Path:
    """The file that a plain path or a `sqlite:///…` address names; the latter is percent-decoded.

    Raises ConfigurationError on any other address, in-memory databases and folders included.
    """
    if "://" not in url:
        if not url or _LIKE_A_URL.match(url):
            # Not repeated, for it may have a password.
            raise ConfigurationError(
                "The database's address is a URL or a path: write it like sqlite:///dealer.db, "
                "postgresql://host/dealer or dealer.db."
            )
        url = sqlite_address(Path(url))
    found = _SQLITE.fullmatch(url)
    if found is None:
        raise ConfigurationError(
            "The log is stored in SQLite or PostgreSQL; write the address like "
            "sqlite:///dealer.db or postgresql://host/dealer."
        )
    host, path = found[1], found[2]
    if host:
        raise ConfigurationError(
            "An SQLite database is on this machine: write three slashes before its path, like "
            "sqlite:///dealer.db, or four before an absolute one, like sqlite:////data/dealer.db."
        )
    if path and (write := not_encoded(path)) is not None:
        raise ConfigurationError(
            f"The address of an SQLite database has a path and no parameters: write {write} in "
            "the path."
        )
    decoded = unquote_to_bytes(path or "")
    if _CONTROL.search(decoded):
        raise ConfigurationError("The path of the database has a control character; leave it out.")
    if not decoded or decoded.startswith((b":memory:", b"file:")):
        raise ConfigurationError(
            "The log needs a file of its own; write it like sqlite:///dealer.db."
        )
    file = Path(os.fsdecode(decoded))
    if file.is_dir():
        raise ConfigurationError(
            f"{file} is a folder; name a file in it, like {sqlite_address(file / 'dealer.db')}."
        )
    return file
