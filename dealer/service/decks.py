"""Ids of the decks of the simple REST interface, and the tables that they open.

A deck's id is its only credential. The table's id is an HMAC of it under the house key, and the
log has only a keyed digest, so neither a table's id nor the database reveals the id of its deck.
"""

from __future__ import annotations

from secrets import choice
from string import ascii_lowercase, digits

from dealer.service.execution import ANONYMOUS_SCOPE, IdempotencyKey

LENGTH = 12
"""Characters of a deck's id, as in the original: 62 bits."""

RULE = "x_decks"
"""The rule that marks the table of a deck; its value is the number of decks that it consists of."""

_SCOPE = "the table of a deck of the simple REST interface, whose id is: "
"""Longer than a `cmd` may be, so that no request of a client has the key of such a command."""


def new_deck_id() -> str:
    """An id that cannot be guessed."""
    return "".join(choice(ascii_lowercase + digits) for _ in range(LENGTH))


def deck_key(deck: str) -> IdempotencyKey:
    """The key of the command that opens the table of this deck; no client's request has it."""
    return IdempotencyKey(ANONYMOUS_SCOPE, _SCOPE + deck, b"deck")
