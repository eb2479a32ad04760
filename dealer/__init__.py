"""A card dealer that runs as a service and that players can check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dealer.client.house import connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    """`connect` is fetched when it is asked for: who only verifies needs no sockets."""
    if name == "connect":
        from dealer.client.house import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
