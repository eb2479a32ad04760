"""The version that the server reports to its clients."""

from __future__ import annotations

from dealer.version import __version__


def program_version() -> str:
    """The version of dealer, such as `0.1.0`."""
    return __version__
