"""How a table looks in an answer: the members that a state and a list of tables have.

`dealer.game.view.snapshot` makes a state, and the lobby's query a listing; these are their types,
for those who read the wire. Nothing is checked against them while a game is on: a test does that.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class SeatView(TypedDict):
    """Who sits there; `since` is the version of their SeatTaken."""

    seat: int
    name: str
    since: int
    key: NotRequired[str]


class ShuffleView(TypedDict):
    """A shuffle that waits for its players; `closed_version` is the size of C1, 0 before."""

    k: int
    stack: str
    n: int
    algorithm: Literal["backward", "forward"]
    steps: int
    started_at: int
    closed_version: int
    closed_at: int
    digests: list[tuple[int, str]]
    nonces: list[tuple[int, str]]


class RoundView(TypedDict):
    """A round that is open.

    `stacks` list slots, bottom first; a card that no shuffle has sealed yet is -1 - its place in
    `deck`. `cards` are [slot, card, salt] of the faces that this viewer may see, `commitments`
    [slot, commitment], `ahead` [seat, digest] for the next shuffle; `k` shuffles have begun.
    """

    round: int
    deck: list[str]
    entropy: Literal["players", "house"]
    commit_ms: int
    reveal_ms: int
    commitment: str
    k: int
    slots: int
    stacks: dict[str, list[int]]
    commitments: list[tuple[int, str]]
    drawable: list[int]
    cards: list[tuple[int, str, str]]
    shown: list[int]
    ahead: list[tuple[int, str]]
    withheld: list[int]
    shuffle: NotRequired[ShuffleView]


class View(TypedDict):
    """A table as one viewer may know it; `rounds` were opened so far, `round` is the open one."""

    version: int
    at: int
    origin: str
    key: str
    rules: dict[str, Any]
    closed: bool
    rounds: int
    seats: list[SeatView]
    round: NotRequired[RoundView]


class Listing(TypedDict):
    """A table in the lobby; `taken` seats have somebody."""

    table: str
    name: str | None
    rounds: int
    version: int
    opened_at: int
    taken: int


class Why(TypedDict):
    """Why something was refused, in one word; `temporary`: the same may succeed later."""

    reason: str
    temporary: bool
    retry_after_ms: NotRequired[int]
