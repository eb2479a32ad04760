"""Version of the installed program."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def program_version() -> str:
    """The version of the distribution; "0" in a checkout that was never installed."""
    try:
        return metadata.version("dealer")
    except metadata.PackageNotFoundError:
        return "0"
