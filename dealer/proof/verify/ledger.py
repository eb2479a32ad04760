"""Ledger: the verifier's own state of seats, rounds, stacks and faces.

It is independent of `dealer.game.state`. A card on a stack is an int: its slot or, before its stack
was first sealed, `~place` with its place in the round's deck.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dealer.game.shuffle import Step
from dealer.game.tape import Tape
from dealer.proof.checkpoint import table_of
from dealer.proof.round_keys import RoundKeys
from dealer.proof.verify.form import Leaf, Parts
from dealer.proof.verify.report import Remarks, Report, Swap


class RuleViolation(Exception):
    """An event that violates the rules; the text says which one."""


@dataclass(slots=True)
class Shuffle:
    """A running shuffle; `closed` is the version of its EntropyClosed, 0 before it."""

    k: int
    stack: str
    n: int
    algorithm: str
    steps: int
    digests: dict[int, str]
    nonces: dict[int, bytes] = field(default_factory=dict)
    closed: int = 0
    done: int = 0
    tape: Tape | None = None
    plan: Iterator[Step] | None = None

    def missing(self) -> list[int]:
        """Seats with a digest that is not opened yet."""
        return [seat for seat in self.digests if seat not in self.nonces]


@dataclass(slots=True)
class Round:
    """An open round; `secret` and `keys` are None if the log does not contain its end."""

    number: int
    deck: list[str]
    entropy: str
    secret: bytes | None
    keys: RoundKeys | None
    stacks: dict[str, list[int]]
    k: int = 0  # number of the running shuffle, or of the next one
    shuffle: Shuffle | None = None
    ahead: dict[int, str] = field(default_factory=dict)  # sent before their shuffle
    withheld: set[int] = field(default_factory=set)
    commitments: list[str] = field(default_factory=list)  # by slot
    faces: list[str | None] = field(default_factory=list)  # by slot
    drawable: list[bool] = field(default_factory=list)  # by slot
    shown: set[int] = field(default_factory=set)  # slots that lie, or lay, face up

    def cards(self, stack: str) -> list[int]:
        """The cards of a stack, bottom first; empty for a stack that was never used."""
        return self.stacks.setdefault(stack, [])

    def face(self, card: int) -> str | None:
        """The code of a card, None if unknown; negative numbers are cards before their seal."""
        if self.keys is None:
            return None
        return self.faces[card] if card >= 0 else self.deck[~card]

    def on_table(self, slot: int) -> bool:
        """Whether a slot exists and was not replaced by a later shuffle."""
        return any(slot in cards for cards in self.stacks.values())


@dataclass(slots=True)
class Ledger:
    """The state of the replay; `roots` are the verified roots by size.

    `secrets` are the secrets S by the version of the RoundOpened that committed to them. At a
    practice table (`laid_out`) the first shuffle need not follow the tape.
    """

    table: bytes
    roots: dict[int, bytes]
    secrets: dict[int, bytes]
    remarks: Remarks
    swaps: list[Swap]
    laid_out: bool = False
    seals: int = 0  # shuffles of closed rounds whose sealed cards were checked
    seats: set[int] = field(default_factory=set)  # currently taken
    sat: set[int] = field(default_factory=set)  # currently or formerly taken
    revealed: set[bytes] = field(default_factory=set)  # nonces of all seats and shuffles
    rounds: int = 0
    round: Round | None = None
    closed: bool = False

    def open_round(self, leaf: Leaf) -> Round:
        """The open round; RuleViolation if the event names another round."""
        if self.round is None or self.round.number != leaf.public["round"]:
            raise RuleViolation(f"Round {leaf.public['round']} is not open.")
        return self.round

    def idle_round(self, leaf: Leaf) -> Round:
        """The open round; RuleViolation during a shuffle, when no card may move or be shown."""
        round_ = self.open_round(leaf)
        if round_.shuffle is not None:
            raise RuleViolation("A shuffle is running; no card may be moved or shown now.")
        return round_

    def shuffling(self, leaf: Leaf) -> tuple[Round, Shuffle]:
        """The open round and its running shuffle; RuleViolation if the event names others."""
        round_ = self.open_round(leaf)
        if round_.shuffle is None or round_.shuffle.k != leaf.public["k"]:
            raise RuleViolation(f"Shuffle {leaf.public['k']} is not running.")
        return round_, round_.shuffle


def ledger_of(parts: Parts, roots: dict[int, bytes], report: Report) -> Ledger:
    """The ledger at the start of a bundle, which counts in its report."""
    return Ledger(
        table=bytes.fromhex(table_of(parts.origin)),
        roots=roots,
        secrets=secrets_of(parts.leaves),
        remarks=report.remarks,
        swaps=report.swaps,
        laid_out=report.practice is not None,
    )


def secrets_of(leaves: list[Leaf]) -> dict[int, bytes]:
    """The secret S of each closed round, by the version of its RoundOpened.

    The first RoundClosed with the round's number, before another RoundOpened, has it.
    """
    secrets: dict[int, bytes] = {}
    opened: Leaf | None = None
    for leaf in leaves:
        if leaf.type == "RoundOpened":
            opened = leaf
        elif (
            leaf.type == "RoundClosed"
            and opened is not None
            and leaf.public["round"] == opened.public["round"]
        ):
            secrets[opened.version] = bytes.fromhex(leaf.public["secret"])
            opened = None
    return secrets


def check_hidden(round_: Round, leaf: Leaf, part: str) -> None:
    """Raise RuleViolation unless the event commits to `part`; passes if S is unknown."""
    keys = round_.keys
    if keys is not None and keys.event_commitment(leaf.version, part).hex() != leaf.commit:
        raise RuleViolation("The commitment does not match the secret and the log.")
