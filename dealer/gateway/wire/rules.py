"""The rules of a table as a type, for the documents: `dealer.game.rules` checks and reads them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dealer.game import rules
from dealer.game.events import CommitMs, RevealMs
from dealer.game.names import NAME_MAX
from dealer.gateway.wire.params import DECK, Deck, DeckName, Shoe
from dealer.gateway.wire.types import CardCodes, EntropySource

Permission = Annotated[
    Literal["host", "players", "nobody"],
    Meta(
        title="Permission",
        description="Who may do something; `players` are the host and every seat.",
    ),
]
Preset = Annotated[
    Literal["free", "dealer", "shared"],
    Meta(title="Preset", description="Who may do what, where no other member says it."),
]
Admission = Annotated[
    Literal["anyone", "invite"], Meta(title="Admission", description="Who may take a seat.")
]
Audience = Annotated[
    Literal["anyone", "nobody"], Meta(title="Audience", description="Who may watch without a seat.")
]
TableName = Annotated[str, Meta(title="TableName", min_length=1, max_length=NAME_MAX)]
SeatCount = Annotated[int, Meta(title="SeatCount", ge=1, le=rules.SEATS_MAX)]
PackName = Annotated[str, Meta(title="PackName", pattern="^[a-z0-9-]{1,64}$")]
BroadcastDelay = Annotated[int, Meta(title="BroadcastDelay", ge=0, le=rules.BROADCAST_MAX)]
_WAIT = Meta(title="WaitMs", ge=rules.WAIT_MS_MIN, le=rules.WAIT_MS_MAX)


class StackedDeck(Struct):
    """The cards of a test deck."""

    order: Annotated[
        CardCodes | None, "the cards on top after each shuffle, the uppermost first"
    ] = None
    seed: Annotated[str | None, "determines the order of the others"] = None


InsecureTestDeck = Annotated[
    StackedDeck | bool, Meta(title="InsecureTestDeck", description="A test deck, or true for none.")
]


class PracticeSource(Struct):
    """The round whose cards a practice table was laid out from."""

    table: Annotated[str, "id of the source"]
    round: Annotated[int, "its round"]
    version: Annotated[int, "its version at which the cards lay so"]
    root: Annotated[str, "its root at a checkpoint that covers the round's close, in hex"]


class Rules(Struct, rename=lambda name: name.rstrip("_")):
    """The rules of a new table.

    Members with other names are free: they mean nothing to the server; begin their names with `x_`,
    because names similar to known ones are refused.
    """

    preset: Annotated[Preset, "who may do what; a member named like an action overrides it"] = (
        "free"
    )
    name: Annotated[TableName | None, "the table's name, for all to read"] = None
    seats: Annotated[SeatCount, "the number of seats"] = rules.SEATS_DEFAULT
    deck: Annotated[Deck, "the deck of rounds that are opened without their own"] = "52"
    entropy: Annotated[EntropySource, "whose random bytes shuffle the deck"] = "players"
    join: Annotated[Admission, "`anyone`, or `invite`: only with the invitation"] = "anyone"
    watch: Annotated[Audience, "whether there are spectators"] = "anyone"
    listed: Annotated[bool, "whether the lobby may list the table"] = True
    pack: Annotated[PackName | None, "the pack of cards that pages show: `/packs/<name>.json`"] = (
        None
    )
    game: Annotated[str | None, "the game that pages help to play: `/games/<name>.json`"] = None
    insecure_test_deck: Annotated[
        InsecureTestDeck | None, "for tests, at a server with `--insecure-test-decks` only"
    ] = None
    broadcast: Annotated[
        BroadcastDelay | None,
        "seconds after which hands are shown by broadcast links; without it they never are",
    ] = None
    practice: Annotated[
        PracticeSource | None, "written by the server alone: this is a practice table"
    ] = None
    commit_ms: Annotated[CommitMs, _WAIT] = rules.WAIT_MS_DEFAULT
    reveal_ms: Annotated[RevealMs, _WAIT] = rules.WAIT_MS_DEFAULT
    open: Annotated[Permission | None, "who may open rounds"] = None
    close: Annotated[Permission | None, "who may close rounds and the table"] = None
    shuffle: Annotated[Permission | None, "who may shuffle the deck and piles"] = None
    deal: Annotated[Permission | None, "who may deal"] = None
    collect: Annotated[
        Permission | None, "who may move cards of another seat's hand; never more than the host"
    ] = None
    draw: Annotated[Permission | None, "who may draw from the deck"] = None
    burn: Annotated[
        Permission | None, "who may put cards of the deck aside, on the pile `burn`"
    ] = None
    cut: Annotated[Permission | None, "who may cut the deck"] = None
    pile: Annotated[
        Permission | None, "who may draw from piles, and move cards between piles and the deck"
    ] = None
    turn: Annotated[Permission | None, "who may turn cards of piles face up"] = None
    discard: Annotated[Permission | None, "who may discard from their own hand"] = None
    play: Annotated[Permission | None, "who may play from their own hand"] = None
    give: Annotated[Permission | None, "who may give a card of their own hand to another seat"] = (
        None
    )
    show: Annotated[Permission | None, "who may show cards of their own hand"] = None
    return_: Annotated[
        Permission | None, "who may put cards of their own hand back into the deck"
    ] = None
    pass_: Annotated[Permission | None, "who may pass cards together with all others"] = None
    annotate: Annotated[Permission | None, "who may add notes"] = None
    take_back: Annotated[Permission | None, "who may take back the last move"] = None
    move_seat: Annotated[Permission | None, "who may move to another seat"] = None


class TableShoe(Shoe, forbid_unknown_fields=False):
    """Several decks as one, each of `cards` (by default 52 standard cards) plus `jokers` jokers."""


class TableRules(Rules):
    """The rules of a table, as they were given when it was opened."""

    deck: Annotated[
        Annotated[DeckName | CardCodes | TableShoe, Meta(title="TableDeck", description=DECK)],
        "the deck of rounds that are opened without their own",
    ] = "52"
