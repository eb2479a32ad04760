"""Damaged tables: those whose rows this process has found not to be what the house wrote.

Every other table plays on, so the server stays ready, and `/readyz` names these.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dealer.errors import DatabaseDamaged

SHOWN = 10
"""Tables that `/readyz` names for one reason."""

log = logging.getLogger(__name__)


class _Damage(NamedTuple):
    """What is wrong with a table; `version` is the last that is missing or altered, if known."""

    sentence: str
    version: int


class DamagedTables:
    """The tables, by their ids in hex, that were damaged when they were last read."""

    def __init__(self) -> None:
        self._tables: dict[str, _Damage] = {}

    def __len__(self) -> int:
        return len(self._tables)

    def __contains__(self, table_id: str) -> bool:
        return table_id in self._tables

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

    def note(self, table_id: str, sentence: str, *, version: int = 0) -> None:
        """The table is damaged, as the sentence says; the first time has a line in the log.

        `version` is the last of the versions that are missing or altered, 0 if it is not known.
        """
        if table_id not in self._tables:
            log.error("table damaged", extra={"fields": {"table": table_id, "says": sentence}})
        self._tables[table_id] = _Damage(sentence, version)

    def intact(self, table_id: str, *, version: int) -> None:
        """The table was loaded, and its rows are what the house wrote: it was repaired.

        Unless a version past the loaded `version` is missing: of that a load says nothing.
        """
        known = self._tables.get(table_id)
        if known is not None and known.version <= version:
            del self._tables[table_id]
            log.info("table repaired", extra={"fields": {"table": table_id}})

    def lines(self) -> list[str]:
        """A line about each of the first `SHOWN` tables, and one that counts the rest."""
        found = (f"damaged table {id}: {one.sentence}" for id, one in self._tables.items())
        return first_lines(found, "more tables are damaged")


def first_lines(lines: Iterable[str], rest: str) -> list[str]:
    """The first `SHOWN` lines, and one that counts the others and ends with `rest`."""
    found = list(lines)
    more = len(found) - SHOWN
    return [*found[:SHOWN], f"{more} {rest}"] if more > 0 else found
