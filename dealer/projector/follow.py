"""Goes on from where a table's read models stand, and stops where the log cannot be followed."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from dealer.errors import DealerError
from dealer.game.size import size_of
from dealer.game.state import Table
from dealer.projector.changes import Changes
from dealer.projector.fold import fold
from dealer.projector.happened import Contradiction, Happened, Number, Stream
from dealer.projector.history import since_round_opened, whole_round
from dealer.proof.codec import decode

Kept = tuple[int, str, int, int, str]
"""(version, type, schema, at, public) of an event, as the log keeps it."""


class Stopped(NamedTuple):
    """Why a table's read models stand still at `version`; all events up to it are in them."""

    table: str
    version: int
    sentence: str


class Reached(NamedTuple):
    """How far a stretch of events could be followed."""

    version: int
    stopped: Stopped | None = None


BYTES = 8 * 2**20
"""What the states that are kept at hand may take, estimated: some thousand of 52 cards."""


class Follower:
    """Folds stretches of streams, and keeps the states of the latest `tables` streams at hand.

    They take at most `bound` bytes, but for the one that was used last. A state at hand is used
    only at the version that it is at; so it does not matter if the transaction that it moved along
    with was undone.
    """

    def __init__(self, *, tables: int, bound: int = BYTES) -> None:
        self._tables = tables
        self._bound = bound
        self._states: OrderedDict[Number, tuple[Table, int]] = OrderedDict()
        self.bytes = 0

    def _take(self, number: Number) -> Table | None:
        table, size = self._states.pop(number, (None, 0))
        self.bytes -= size
        return table

    def _put(self, number: Number, table: Table) -> None:
        size = size_of(table)
        self._states[number] = table, size
        self.bytes += size
        while len(self._states) > self._tables or (
            self.bytes > self._bound and len(self._states) > 1
        ):
            _, (_, size) = self._states.popitem(last=False)
            self.bytes -= size

    def follow(
        self,
        connection: Connection,
        stream: Stream,
        *,
        after: int,
        rows: Sequence[Kept],
        into: Changes,
    ) -> Reached:
        """Adds to `into` what `rows`, the events after version `after`, change."""
        happened, stopped = _read(connection, stream, after, rows)
        # Out of the store while it changes: an error leaves no half-changed state there.
        table = self._take(stream.number)
        try:
            if table is None or table.version != after:
                table = since_round_opened(connection, stream.number, after)
            into.extend(fold(stream, table, happened))
        except Contradiction as fault:
            reached = fault.version - 1
            if reached > after:
                fitting = rows[: reached - after]
                self.follow(connection, stream, after=after, rows=fitting, into=into)
            return Reached(reached, Stopped(stream.table.hex(), reached, str(fault)))
        except DealerError as fault:
            return Reached(after, Stopped(stream.table.hex(), after, str(fault)))
        self._put(stream.number, table)
        return Reached(table.version, stopped)


def _read(
    connection: Connection, stream: Stream, after: int, rows: Sequence[Kept]
) -> tuple[list[Happened], Stopped | None]:
    """The events of `rows` up to the first that cannot be read, and why that one cannot."""
    happened: list[Happened] = []
    table = stream.table.hex()
    for wanted, (version, kind, schema, at, public) in enumerate(rows, after + 1):
        if version != wanted:
            missing = f"Version {wanted} is missing in the log; restore it from a backup."
            return happened, Stopped(table, wanted - 1, missing)
        try:
            told = json.loads(public)
            event = decode(kind, schema, told, {})
            if kind == "RoundClosed":
                secret = bytes.fromhex(told["secret"])
                opened = whole_round(connection, stream, version, secret)
                happened.append(Happened(event, at, opened))
            else:
                happened.append(Happened(event, at))
        except DealerError as error:
            return happened, Stopped(table, version - 1, str(error))
        except (ValueError, KeyError, TypeError) as error:
            altered = f"Version {version} cannot be read ({error}); restore it from a backup."
            return happened, Stopped(table, version - 1, altered)
    return happened, None
