"""Database addresses: `sqlite:///FILE` and `postgresql://…`."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from dealer.errors import ConfigurationError

_POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")


def is_postgres(url: str) -> bool:
    """Whether this is the address of a PostgreSQL database; False for any other text."""
    return url.partition("://")[0] in _POSTGRES_SCHEMES


def database_file(url: str) -> Path:
    """The file that a `sqlite:///…` address names.

    Raises ConfigurationError on any other address, in-memory databases and folders included.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigurationError(
            "The database's address is not a URL; write it like sqlite:///dealer.db."
        ) from None
    if parsed.get_backend_name() != "sqlite":
        raise ConfigurationError(
            "The log is stored in SQLite or PostgreSQL; write the address like "
            "sqlite:///dealer.db or postgresql://host/dealer."
        )
    if not parsed.database or parsed.database.startswith((":memory:", "file:")):
        raise ConfigurationError(
            "The log needs a file of its own; write it like sqlite:///dealer.db."
        )
    file = Path(parsed.database)
    if file.is_dir():
        raise ConfigurationError(
            f"{file} is a folder; name a file in it, like sqlite:///{file}/dealer.db."
        )
    return file
