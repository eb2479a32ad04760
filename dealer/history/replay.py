"""Replay of a verified bundle: each event with the table's state before it and known cards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dealer.errors import HistoryUnavailable
from dealer.game.events import TAKE_BACK, Event, NoteAdded
from dealer.game.state import Table, copy_table, evolve
from dealer.proof import codec
from dealer.proof.bundle import CHECKPOINT, LEAF, OPENED, read_leaves
from dealer.proof.checkpoint import open_note, table_of
from dealer.proof.verify import Report, Swap, verify
from dealer.proof.verify.replay import INSECURE


class ReplayStep(NamedTuple):
    """One event and the state of the table before it.

    In `Game.steps` and `replay_bundle` the next step changes the same `table`; `Game.moments` gives
    each step a table of its own.
    `round` is 0 outside of rounds; `swap` is the recomputed swap, for a swap of a closed round.
    """

    version: int
    at: int
    round: int
    type: str
    event: Event
    table: Table
    swap: Swap | None


class Game(NamedTuple):
    """A verified bundle of a table.

    It has `rounds` rounds, the first `closed` of which are closed. `roots` are the signed roots in
    hex, by version. `leaves` and `openings` are lines of the bundle.
    """

    origin: str
    key: str
    rounds: int
    closed: int
    leaves: Sequence[bytes]
    swaps: Sequence[Swap]
    roots: Mapping[int, str]
    openings: Sequence[bytes]

    @classmethod
    def read(cls, lines: Iterable[str | bytes], report: Report | None = None) -> Game:
        """The game of a bundle's lines (without their newlines).

        `report` is the verifier's report of these lines, if available. Raises the ProofFault of the
        first fault: a forged bundle has no history. One of a table with insecure test decks has
        none either, which is a HistoryUnavailable.
        """
        bundle = [line if isinstance(line, bytes) else _encoded(line) for line in lines]
        found = verify(bundle) if report is None else report
        if found.fault is not None:
            if found.fault.sentence == INSECURE:
                raise HistoryUnavailable(INSECURE)
            raise found.fault
        key, table = bytes.fromhex(found.key), table_of(found.origin)
        notes = [json.loads(line) for line in bundle if line.startswith(CHECKPOINT)]
        signed = (open_note(note["checkpoint"], key=key, table=table) for note in notes)
        leaves = [line for line in bundle if line.startswith(LEAF)]
        openings = [line for line in bundle if line.startswith(OPENED)]
        roots = {size: root.hex() for size, root in signed}
        rounds = found.remarks.rounds
        closed = rounds - found.remarks.open_rounds
        return cls(found.origin, found.key, rounds, closed, leaves, found.swaps, roots, openings)

    @property
    def table(self) -> str:
        return table_of(self.origin)

    @property
    def house(self) -> str:
        return self.origin.removesuffix(f"/t/{self.table}")

    def steps(self) -> Iterator[ReplayStep]:
        """All events from TableOpened on; all steps have one table, which the next step changes."""
        return replay_bundle([*self.leaves, *self.openings], self.swaps)

    def moments(self) -> Iterator[ReplayStep]:
        """All events, each with a copy of the table that may be kept and compared with others."""
        return (step._replace(table=copy_table(step.table)) for step in self.steps())


def replay_bundle(lines: Sequence[bytes], swaps: Iterable[Swap]) -> Iterator[ReplayStep]:
    """The steps of the leaves among the verified `lines` of one table, from its first event on.

    `swaps` are those that the verifier recomputed; without them cards stay unknown.
    """
    table, known = Table(), {swap.version: swap for swap in swaps}
    for leaf in read_leaves(lines):
        swap = known.get(leaf["version"])
        hidden: Mapping[str, int] = {} if swap is None else {"j": swap.j}
        event = codec.decode(leaf["type"], leaf["v"], leaf["public"], hidden)
        number = leaf["public"].get("round", 0)
        if isinstance(event, NoteAdded) and event.kind == TAKE_BACK and table.round is not None:
            number = table.round.number  # other notes belong to the table
        yield ReplayStep(leaf["version"], leaf["at"], number, leaf["type"], event, table, swap)
        evolve(table, event, leaf["at"])


def _encoded(line: str) -> bytes:
    """The original bytes of a line; the verifier reports those that are not UTF-8."""
    return line.encode(errors="surrogateescape")
