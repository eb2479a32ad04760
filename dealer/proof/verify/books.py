"""The verifier's own books: who sits, where each card lies, and what the secrets say it is.

They share no line with the house's state. A card on a stack is a number: its slot, or, before its
stack was first sealed, `~place` in the round's deck.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dealer.game.shuffle import Step
from dealer.game.stacks import DECK
from dealer.game.tape import Tape
from dealer.proof.keys import RoundKeys
from dealer.proof.verify.form import Leaf, Public
from dealer.proof.verify.report import Remarks, Swap


class Wrong(Exception):
    """This event cannot have happened; the sentence says why."""


@dataclass(slots=True)
class Shuffle:
    """A shuffle that runs; `closed` is the version of its EntropyClosed, 0 before."""

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
        """Seats whose digest counts and is not opened."""
        return [seat for seat in self.digests if seat not in self.nonces]


@dataclass(slots=True)
class Round:
    """An open round; `secret` and `keys` are None where the log does not come to its end."""

    number: int
    deck: list[str]
    entropy: str
    secret: bytes | None
    keys: RoundKeys | None
    stacks: dict[str, list[int]]
    k: int = 0  # of the shuffle that runs, or comes next
    shuffle: Shuffle | None = None
    ahead: dict[int, str] = field(default_factory=dict)  # digests for the shuffle that comes next
    withheld: set[int] = field(default_factory=set)
    commitments: list[str] = field(default_factory=list)  # by slot
    faces: list[str | None] = field(default_factory=list)  # by slot
    drawable: list[bool] = field(default_factory=list)  # by slot

    @classmethod
    def open(cls, leaf: Public, *, secret: bytes | None, keys: RoundKeys | None) -> Round:
        deck = leaf["deck"]
        stacks = {DECK: [~place for place in range(len(deck))]}
        return cls(leaf["round"], deck, leaf["entropy"], secret, keys, stacks)

    def cards(self, stack: str) -> list[int]:
        """The cards of a stack, bottom first; of one that nothing was put on, none."""
        return self.stacks.setdefault(stack, [])

    def face(self, card: int) -> str | None:
        if self.keys is None:
            return None
        return self.faces[card] if card >= 0 else self.deck[~card]

    def lies(self, slot: int) -> bool:
        """Whether a slot was made and not given up for a new one."""
        return any(slot in cards for cards in self.stacks.values())


@dataclass(slots=True)
class Books:
    """All that replaying the log knows; `roots` are the proved ones, by size.

    `secrets` holds S by the version of the RoundOpened that committed to it.
    """

    table: bytes
    roots: dict[int, bytes]
    secrets: dict[int, bytes]
    remarks: Remarks
    swaps: list[Swap]
    seats: set[int] = field(default_factory=set)  # taken now
    sat: set[int] = field(default_factory=set)  # taken now or earlier
    revealed: set[bytes] = field(default_factory=set)  # nonces, of any seat and shuffle
    rounds: int = 0
    round: Round | None = None
    closed: bool = False

    def of(self, leaf: Leaf) -> Round:
        """The open round, if it is the one that this event names."""
        if self.round is None or self.round.number != leaf.public["round"]:
            raise Wrong(f"Round {leaf.public['round']} is not open.")
        return self.round

    def still(self, leaf: Leaf) -> Round:
        """The same, if no shuffle runs: until its seal no card moves or is shown."""
        round_ = self.of(leaf)
        if round_.shuffle is not None:
            raise Wrong("A shuffle runs, and until its seal no card moves or is shown.")
        return round_

    def shuffling(self, leaf: Leaf) -> tuple[Round, Shuffle]:
        """The open round and the shuffle that runs in it, if it is the one that is named."""
        round_ = self.of(leaf)
        if round_.shuffle is None or round_.shuffle.k != leaf.public["k"]:
            raise Wrong(f"Shuffle {leaf.public['k']} does not run.")
        return round_, round_.shuffle


def secrets_of(leaves: list[Leaf]) -> dict[int, bytes]:
    """S of each round that was closed, by the version of its RoundOpened.

    A round's S is that of the first RoundClosed with its number before another RoundOpened.
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
    """Raise Wrong unless the event's commitment is that of `part`; only S can tell."""
    keys = round_.keys
    if keys is not None and keys.event_commitment(leaf.version, part).hex() != leaf.commit:
        raise Wrong("The event commits to something else than the secret and the log give.")
