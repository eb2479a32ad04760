"""A card dealer service whose games players can verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dealer.client.house import connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    """Import `connect` on first use: verification alone needs no network library."""
    if name == "connect":
        from dealer.client.house import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
