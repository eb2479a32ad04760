"""Types of values that other rooms make and results contain: a table's state, events, listings.

`dealer.game.view.snapshot` makes the state, and the lobby's query the listing. The schemas are
derived from these types; values are not validated against them at run time, but in a test.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from dealer.errors import REFUSALS
from dealer.game import events
from dealer.gateway.wire import types

AnyEvent = Annotated[dict[str, Any], types.component("Event")]
GivenRules = Annotated[dict[str, Any], types.component("TableRules")]
OpenedSlot = Annotated[
    tuple[int, str, str],
    Meta(
        title="OpenedSlot",
        description="The number of a slot, the code of its card, and the salt in hex.",
    ),
]

# What members mean in all that the server sends, besides those of events.
Table = Annotated[str, "id of the table"]
Version = Annotated[int, "version of the newest event, from 1: its place in the table's log"]
Commitment = Annotated[str, "hash of the house's secret of the round"]
HouseKey = Annotated[str, "the house's Ed25519 public key for this table, 32 bytes in hex"]
TableName = Annotated[str | None, "name of the table; null without one"]
Ref = Annotated[str, "the service's own id of its table"]
Rounds = Annotated[int, "how many rounds have been opened"]
Taken = Annotated[int, "how many seats are taken"]


class SeatView(TypedDict):
    """A player at a seat."""

    seat: events.Seat
    name: events.PlayerName
    since: Annotated[int, "version of the event with which the player took the seat"]
    key: NotRequired[
        Annotated[str, "the Ed25519 public key with which the player cosigns, 32 bytes in hex"]
    ]
    bot: NotRequired[Annotated[bool, "true for a program, as it or its service says"]]
    subject: NotRequired[
        Annotated[str, "the service's own id of the user; only for the service that gave it"]
    ]


class ShuffleView(TypedDict):
    """A shuffle that waits for entropy."""

    k: events.ShuffleIndex
    stack: Annotated[str, "the stack that is shuffled"]
    n: events.StackSize
    algorithm: Annotated[
        types.Algorithm, "`backward` (from the top) or `forward` (from the bottom)"
    ]
    steps: events.ShuffleSteps
    started_at: Annotated[int, "when the shuffle was requested, in epoch milliseconds"]
    closed_version: Annotated[int, "size of the checkpoint after the commitments; 0 before it"]
    closed_at: Annotated[int, "when commitments were closed, in epoch milliseconds; 0 before it"]
    digests: Annotated[list[types.NumberedHash], "[seat, digest] of the commitments"]
    nonces: Annotated[list[types.NumberedHash], "[seat, nonce] of the reveals"]


class RoundView(TypedDict):
    """The open round."""

    round: events.Round
    deck: Annotated[list[str], "the codes of all cards, bottom first"]
    entropy: Annotated[types.EntropySource, "whose random bytes shuffle"]
    commit_ms: events.CommitMs
    reveal_ms: events.RevealMs
    commitment: Commitment
    k: Annotated[int, "how many shuffles have started"]
    slots: Annotated[int, "how many slots have been given"]
    stacks: Annotated[
        dict[str, list[int]],
        "slots by stack, bottom first; a card without a seal is -1 - its place in `deck`",
    ]
    commitments: Annotated[
        list[types.NumberedHash], "[slot, commitment] of the cards that are sealed"
    ]
    drawable: Annotated[list[int], "slots that may be drawn"]
    cards: Annotated[list[OpenedSlot], "[slot, card, salt] of the faces that the caller may see"]
    shown: Annotated[list[int], "slots whose faces all may see"]
    ahead: Annotated[list[types.NumberedHash], "[seat, digest] of commitments for the next shuffle"]
    withheld: Annotated[
        list[int], "seats that are left out of shuffles, because they withheld a reveal"
    ]
    shuffle: NotRequired[Annotated[ShuffleView, "the shuffle that waits for random bytes"]]


class View(TypedDict):
    """A table as one viewer may see it."""

    version: Version
    at: Annotated[int, "when the newest event was written, in epoch milliseconds"]
    origin: events.Origin
    key: HouseKey
    rules: Annotated[GivenRules, "the rules of the table"]
    closed: Annotated[bool, "true if the table is closed"]
    rounds: Rounds
    seats: Annotated[list[SeatView], "the players"]
    host_seat: NotRequired[Annotated[int, "number of the seat whose player was made host"]]
    round: NotRequired[Annotated[RoundView, "the open round"]]


class PrivateFace(TypedDict):
    """The face of a card, for the seat that may see it."""

    card: Annotated[types.CardCode, "code of the card"]
    salt: Annotated[types.Hash, "salt of the card's commitment"]
    slot: Annotated[types.WholeNumber, "number of the sealed card"]


class Opening(TypedDict):
    """What people wrote in an event: the client checks it against `commit`, then shows it."""

    part: Annotated[dict[str, Any], "the members of the opened part"]
    salt: Annotated[types.Hash, "salt of the commitment"]


class Event(TypedDict, total=False):
    """One event of a table's log; `type` says which.

    The documents have a schema for each type of event, which is made of this one and the class of
    the event.
    """

    at: Annotated[types.LongNumber, "when the server received the command, in epoch milliseconds"]
    public: Annotated[dict[str, Any], "what all may know of the event"]
    table: Annotated[types.TableId, "id of the table"]
    type: Annotated[str, "type of the event"]
    v: Annotated[int, "number of this type's schema"]
    version: Annotated[
        types.VersionNumber, "the event's place in the table's log, from 1, without gaps"
    ]
    commit: Annotated[types.Hash, "commitment to the hidden or opened part"]
    opened: Annotated[Opening, "what people wrote, to which the event commits"]
    private: Annotated[PrivateFace, "the card's face, only for the seat that may see it"]


class TableListing(TypedDict):
    """A table in a public list."""

    table: Table
    name: TableName
    rounds: Rounds
    version: Version
    opened_at: Annotated[int, "when the table was opened, in epoch milliseconds"]
    taken: Taken
    practice: NotRequired[
        Annotated[bool, "true for a practice table, whose first round was laid out"]
    ]


class ServiceTableListing(TypedDict):
    """A table of a service; name, times, rounds and occupied seats follow it a moment later."""

    table: Table
    state: Annotated[types.TableCondition, "the condition of the table"]
    version: Version
    name: TableName
    rounds: Rounds
    taken: Taken
    opened_at: Annotated[
        int | None, "when the table was opened, in epoch milliseconds; null if it is not known yet"
    ]
    closed_at: NotRequired[Annotated[int, "when the table was closed, in epoch milliseconds"]]
    ref: NotRequired[Ref]
    opened_by: NotRequired[Annotated[str, "name of the key that opened the table"]]


class ErrorData(TypedDict):
    """Why a request was refused, for programs."""

    reason: Annotated[
        str,
        Meta(
            title="RefusalReason",
            description="Why a request was refused.",
            extra_json_schema={"enum": list(REFUSALS)},
        ),
        "why, in one word for programs",
    ]
    temporary: Annotated[bool, "true if the same request may succeed later"]
    retry_after_ms: NotRequired[Annotated[int, "milliseconds to wait; only of `rate_limited`"]]
