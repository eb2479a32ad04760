"""A card dealer service whose games players can verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dealer.analysis.open_log import open_log
    from dealer.client.house import connect

__all__ = ["connect", "open_log"]


def __getattr__(name: str) -> Any:
    """Import the two on first use: verification alone needs no network library and no database."""
    if name == "connect":
        from dealer.client.house import connect

        return connect
    if name == "open_log":
        from dealer.analysis.open_log import open_log

        return open_log
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
