"""A card dealer service whose games players can verify.

`connect` opens a connection to a server; every exception that a program may catch is here too.
`Refused` and its subclasses are answers to a player, `DatabaseError` and its subclasses are faults
of a server's database; `dealer.errors` shows them as a tree.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dealer import errors
from dealer.errors import *  # noqa: F403  exactly the names of errors.__all__
from dealer.version import __version__

if TYPE_CHECKING:
    from dealer.analysis.open_bundle import open_bundle
    from dealer.analysis.open_log import open_log
    from dealer.client import (
        Cosigner,
        Evidence,
        House,
        RemoteTable,
        RetryPolicy,
        TableEvent,
        connect,
    )

__all__ = [
    "Cosigner",
    "Evidence",
    "House",
    "RemoteTable",
    "RetryPolicy",
    "TableEvent",
    "__version__",
    "connect",
    "open_bundle",
    "open_log",
]
__all__ += errors.__all__

_OF_CLIENT = frozenset(
    ("Cosigner", "Evidence", "TableEvent", "House", "RemoteTable", "RetryPolicy", "connect")
)
"""Imported on first use: verification alone needs no network library."""


def __getattr__(name: str) -> Any:
    if name == "client":
        return import_module("dealer.client")
    if name in _OF_CLIENT:
        return getattr(import_module("dealer.client"), name)
    if name in ("open_bundle", "open_log"):
        try:
            return getattr(import_module(f"dealer.analysis.{name}"), name)
        except ModuleNotFoundError as error:
            raise errors.ConfigurationError(
                f"dealer.{name} needs the package of the server, of which {error.name} is missing: "
                "`pip install .` in the source folder. dealer-client plays and verifies only."
            ) from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
