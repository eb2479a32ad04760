"""Damaged tables: those whose rows this process has found not to be what the house wrote.

Every other table plays on, so the server stays ready, and `/readyz` names these.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dealer.errors import DatabaseDamaged

SHOWN = 10
"""Tables that `/readyz` names for one reason."""

log = logging.getLogger(__name__)


class DamagedTables:
    """The tables, by their ids in hex, that were damaged when they were last read."""

    def __init__(self) -> None:
        self._sentences: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._sentences)

    def __contains__(self, table_id: str) -> bool:
        return table_id in self._sentences

    @contextmanager
    def noticed(self, table_id: str) -> Iterator[None]:
        """Note the table if the block, which reads it, raises DatabaseDamaged.

        The error is `logged`, so that no request that meets the damage has another line.
        """
        try:
            yield
        except DatabaseDamaged as error:
            self.note(table_id, str(error))
            error.logged = True
            raise

    def note(self, table_id: str, sentence: str) -> None:
        """The table is damaged, as the sentence says; the first time has a line in the log."""
        if table_id not in self._sentences:
            log.error("table damaged", extra={"fields": {"table": table_id, "says": sentence}})
        self._sentences[table_id] = sentence

    def intact(self, table_id: str) -> None:
        """The table was loaded, and its rows are what the house wrote: it was repaired."""
        if self._sentences.pop(table_id, None) is not None:
            log.info("table repaired", extra={"fields": {"table": table_id}})

    def lines(self) -> list[str]:
        """A line about each of the first `SHOWN` tables, and one that counts the rest."""
        found = (f"damaged table {id}: {says}" for id, says in self._sentences.items())
        return first_lines(found, "more tables are damaged")


def first_lines(lines: Iterable[str], rest: str) -> list[str]:
    """The first `SHOWN` lines, and one that counts the others and ends with `rest`."""
    found = list(lines)
    more = len(found) - SHOWN
    return [*found[:SHOWN], f"{more} {rest}"] if more > 0 else found
