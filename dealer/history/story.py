"""A game told again from its bundle, event by event, with each card that may be known by now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dealer.game.events import Event
from dealer.game.state import Table, evolve
from dealer.proof import codec
from dealer.proof.checkpoint import open_note, table_of
from dealer.proof.verify import Report, Swap, verify

_CHECKPOINT = b'{"checkpoint":'


class Moment(NamedTuple):
    """One event, and the table as it stood just before; the next moment changes that `table`.

    `round` is 0 outside of rounds; `swap` is there for a swap of a closed round.
    """

    version: int
    at: int
    round: int
    type: str
    event: Event
    table: Table
    swap: Swap | None


class Game(NamedTuple):
    """A table's verified bundle.

    Of its `rounds` the first `closed` ones are closed. `roots` are those that the house signed, in
    hex, by version.
    """

    origin: str
    key: str
    rounds: int
    closed: int
    leaves: Sequence[bytes]
    swaps: Sequence[Swap]
    roots: Mapping[int, str]

    @classmethod
    def read(cls, lines: Iterable[str | bytes], report: Report | None = None) -> Game:
        """The game of a bundle's lines (without their newlines).

        `report` is the verifier's of these very lines, where somebody has it. Raises the
        ProofFault of the first line that does not hold: of a forged game there is no history.
        """
        bundle = [line if isinstance(line, bytes) else _encoded(line) for line in lines]
        found = verify(bundle) if report is None else report
        if found.fault is not None:
            raise found.fault
        key, table = bytes.fromhex(found.key), table_of(found.origin)
        notes = [json.loads(line) for line in bundle if line.startswith(_CHECKPOINT)]
        signed = (open_note(note["checkpoint"], key=key, table=table) for note in notes)
        leaves = bundle[1 : len(bundle) - len(notes)]
        roots = {size: root.hex() for size, root in signed}
        rounds = found.remarks.rounds
        closed = rounds - found.remarks.open_rounds
        return cls(found.origin, found.key, rounds, closed, leaves, found.swaps, roots)

    @property
    def table(self) -> str:
        return table_of(self.origin)

    @property
    def house(self) -> str:
        return self.origin.removesuffix(f"/t/{self.table}")

    def moments(self) -> Iterator[Moment]:
        """The whole story, from TableOpened on."""
        return retell(self.leaves, self.swaps)


def retell(leaves: Iterable[str | bytes], swaps: Iterable[Swap]) -> Iterator[Moment]:
    """The moments of the verified `leaves` of one table, from its first event on.

    `swaps` are those that the verifier recomputed: without them a card stays unknown.
    """
    table, known = Table(), {swap.version: swap for swap in swaps}
    for text in leaves:
        leaf = json.loads(text)
        swap = known.get(leaf["version"])
        hidden: Mapping[str, int] = {} if swap is None else {"j": swap.j}
        event = codec.decode(leaf["type"], leaf["v"], leaf["public"], hidden)
        number = leaf["public"].get("round", 0)
        yield Moment(leaf["version"], leaf["at"], number, leaf["type"], event, table, swap)
        evolve(table, event, leaf["at"])


def _encoded(line: str) -> bytes:
    """What is no text comes to the verifier as the bytes it was, which then finds the fault."""
    return line.encode(errors="surrogateescape")
