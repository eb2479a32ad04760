"""Whether this server has insecure test decks (`--insecure-test-decks`): asked here only.

A server without them opens no table with the rule `insecure_test_deck`, loads none that another one
has opened, and has no way to a shuffle without the tape. Every table of a server with
them has the rule, also if the deck is shuffled as anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dealer.errors import BadRequest, UnknownTable
from dealer.game.insecure_deck import RULE, InsecureDeck
from dealer.game.state import Table


class InsecureDecks:
    """The test decks of this server; none unless `allowed`."""

    def __init__(self, *, allowed: bool) -> None:
        self._allowed = allowed

    def rules_for(self, rules: Mapping[str, Any]) -> Mapping[str, Any]:
        """The rules of a table to be opened; BadRequest for a test deck that is not allowed."""
        if self._allowed:
            return {RULE: True, **rules}
        if RULE in rules:
            raise BadRequest(
                f"The rule {RULE} is for tests: this server was not started with "
                "--insecure-test-decks."
            )
        return rules

    def require_served(self, table: Table, table_id: str) -> None:
        """Raise UnknownTable for a table with a test deck at a server without them."""
        if not self._allowed and RULE in table.rules.given:
            raise UnknownTable(
                f"Table {table_id} has an insecure test deck: only a server that was started with "
                "--insecure-test-decks serves it."
            )

    def deck_of(self, table: Table) -> InsecureDeck | None:
        """What the shuffles of a table are to give; None for the tape."""
        return InsecureDeck.of(table.rules.given) if self._allowed else None
