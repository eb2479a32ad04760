"""Types of values that other rooms make and results contain: a table's state, a table listing.

`dealer.game.view.snapshot` makes the state, and the lobby's query the listing. The schemas are
derived from these types; values are not validated against them at run time, but in a test.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class SeatView(TypedDict):
    """A player at a seat; `since` is the version of the SeatTaken event.

    `bot` is true for a program that says that it is one. `subject` is in `table.state` for the
    service whose ticket the seat was taken with.
    """

    seat: int
    name: str
    since: int
    key: NotRequired[str]
    bot: NotRequired[bool]
    subject: NotRequired[str]


class ShuffleView(TypedDict):
    """A shuffle that waits for entropy; `closed_version` is the size of C1, 0 before it."""

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
    """The open round.

    `stacks` list slots, bottom first; a card that no shuffle has sealed yet is -1 - its place in
    `deck`. `cards` are [slot, card, salt] of the faces that this viewer may see, `commitments`
    [slot, commitment], `ahead` [seat, digest] for the next shuffle; `k` shuffles have started.
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
    """A table as one viewer may see it; `rounds` counts the rounds opened so far.

    `host_seat` is that of the player whom the host made host.
    """

    version: int
    at: int
    origin: str
    key: str
    rules: dict[str, Any]
    closed: bool
    rounds: int
    seats: list[SeatView]
    host_seat: NotRequired[int]
    round: NotRequired[RoundView]


class TableListing(TypedDict):
    """A table in the lobby; `taken` counts occupied seats."""

    table: str
    name: str | None
    rounds: int
    version: int
    opened_at: int
    taken: int


class ServiceTableListing(TypedDict):
    """A table of a service; `opened_by` is the name of the key that opened it.

    Name, times, rounds and occupied seats follow the table a moment later.
    """

    table: str
    state: Literal["open", "closed", "archived"]
    version: int
    name: str | None
    rounds: int
    taken: int
    opened_at: int | None
    closed_at: NotRequired[int]
    ref: NotRequired[str]
    opened_by: NotRequired[str]


class ErrorData(TypedDict):
    """`reason` in one word; `temporary` if the same request may succeed later."""

    reason: str
    temporary: bool
    retry_after_ms: NotRequired[int]
