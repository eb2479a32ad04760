"""Rights of service keys: the right that a key needs for each method, as a service.

A service acts by its rights at the tables that it opened, with `admin` at all tables. Other methods
need no right: a key's connection may use them as a player's may, with the token of a seat or of the
host. Reading a table that anyone may watch needs none either.
"""

from __future__ import annotations

_OF_RIGHT: dict[str, tuple[str, ...]] = {
    "open": (
        "table.open",
        "table.note",
        "round.open",
        "deck.shuffle",
        "deck.deal",
        "deck.burn",
        "deck.cut",
        "deck.return",
        "hand.pass",
        "hand.take_back",
        "pile.move",
        "pile.shuffle",
        "pile.turn",
    ),
    "seat": ("seat.ticket", "seat.vacate", "seat.move", "table.transfer_host"),
    "close": ("table.close", "round.close"),
    "read": ("table.list", "table.state", "table.watch", "table.presence", "audit.bundle"),
}

METHOD_RIGHTS: dict[str, str] = {
    method: right for right, methods in _OF_RIGHT.items() for method in methods
}
"""The right by the name of the method."""

JOURNALLED = frozenset(("seat.vacate", "table.transfer_host", "table.close"))
"""Commands that concern others: a service's are entered in the operators' journal."""
