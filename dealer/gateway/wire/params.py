"""Parameters of each method; an unknown member is an error.

Types are validated while the frame is decoded. `table` may be omitted on a connection that is on
one table only.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from dealer.game.cards import DECK_MAX, SHOE_MAX

# A text of PostgreSQL cannot contain U+0000: the insert of such an id would fail.
NO_NUL = r"^[^\x00]*$"
Cmd = Annotated[str, Meta(min_length=1, max_length=64, pattern=NO_NUL)]
Ref = Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_NUL)]
Subject = Annotated[str, Meta(min_length=1, max_length=255, pattern=NO_NUL)]
Text = Annotated[str, Meta(max_length=256)]
Hex32 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Number = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Version = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Count = Annotated[int, Meta(ge=1, le=DECK_MAX)]
Code = Annotated[str, Meta(min_length=1, max_length=16)]
Codes = Annotated[list[Code], Meta(min_length=1, max_length=DECK_MAX)]
Cards = Annotated[list[Code | Number], Meta(min_length=1, max_length=DECK_MAX)]
Where = Literal["top", "bottom"] | Number
End = Literal["top", "bottom", "random"]
Face = Literal["up", "down"]
Stack = Annotated[str, Meta(min_length=1, max_length=37)]
Pile = Annotated[str, Meta(min_length=1, max_length=37, description="with or without `pile:`")]


class Shoe(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Several decks as one, each of `cards` (by default 52 standard cards) plus `jokers` jokers."""

    decks: Annotated[int, Meta(ge=1, le=SHOE_MAX)] = 1
    jokers: Annotated[int, Meta(ge=0, le=2)] = 0
    cards: Codes | None = None


Deck = Literal["52", "54"] | Codes | Shoe


class Params(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """No parameters."""


class OfTable(Params, kw_only=True):
    table: Text | None = None
    token: Text | None = None


class Command(OfTable, kw_only=True):
    """`cmd` is the caller's own id of this command; refused if the table is past `expect`."""

    cmd: Cmd | None = None
    expect: Version | None = None


class TableOpen(Params, kw_only=True):
    deck: Deck | None = None
    seats: Number | None = None
    rules: dict[str, Any] | None = None
    name: Text | None = None
    ref: Ref | None = None
    host: bool = True
    cmd: Cmd | None = None


class TableList(Params, kw_only=True):
    """All of them are for services, which list their own tables."""

    ref: Ref | None = None
    state: Literal["open", "closed", "archived"] | None = None
    after: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")] | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class TableJoin(Params, kw_only=True):
    """Either `name`, or a `ticket`, or a `jwt`, whose claims may give the name.

    Beside a ticket or a JWT `name` counts where the name that it gives is taken, or where it gives
    none.

    `bot` says that the player is a program, as the ticket may say, too.
    """

    name: Text | None = None
    table: Text | None = None
    ticket: Annotated[str, Meta(max_length=3_100)] | None = None
    jwt: Annotated[str, Meta(max_length=8_192)] | None = None
    seat: Number | None = None
    invite: Text | None = None
    key: Hex32 | None = None
    bot: bool = False
    cmd: Cmd | None = None
    expect: Version | None = None

    def __post_init__(self) -> None:
        if self.name is None and self.ticket is None and self.jwt is None:
            raise ValueError("Object missing required field `name`, `ticket` or `jwt`")
        if self.ticket is not None and self.jwt is not None:
            raise ValueError("Object has both `ticket` and `jwt`")


class SeatTicket(Params, kw_only=True):
    table: Text
    name: Text
    seat: Number | None = None
    subject: Subject | None = None
    bot: bool = False
    expires_s: Annotated[int, Meta(ge=1, le=30 * 86_400)] = 3_600


class FeedFollow(Params, kw_only=True):
    """`after` is a position, `start` (the default) or `now`."""

    after: Text | None = None
    table: Text | None = None
    type: Annotated[list[Text], Meta(max_length=64)] | None = None


class TableState(OfTable, kw_only=True):
    """`at` is an earlier version of the table, `seat` one whose cards a service reads there."""

    at: Annotated[int, Meta(ge=1, le=2**53 - 1)] | None = None
    seat: Number | None = None


class TableWatch(OfTable, kw_only=True):
    after: Version | None = None


class TableResume(Params, kw_only=True):
    token: Text
    after: Version
    table: Text | None = None


class SeatVacate(Command, kw_only=True):
    seat: Number
    reason: Annotated[str, Meta(max_length=256)] = ""


class SeatMove(Command, kw_only=True):
    to: Number
    seat: Number | None = None


class TableTransferHost(Command, kw_only=True):
    seat: Number


class TableNote(Command, kw_only=True):
    kind: Annotated[str, Meta(pattern="^[a-z0-9._-]{1,64}$")]
    text: Annotated[str, Meta(max_length=2048)]


class TableCosign(OfTable, kw_only=True):
    cosignature: Annotated[str, Meta(max_length=1024)]
    cmd: Cmd | None = None


class RoundOpen(Command, kw_only=True):
    deck: Deck | None = None
    entropy: Literal["players", "house"] | None = None
    commit_ms: Number | None = None
    reveal_ms: Number | None = None


class DeckShuffle(Command, kw_only=True):
    stack: Stack = "deck"
    algorithm: Literal["backward", "forward"] = "backward"
    steps: Number | None = None


class PileShuffle(Command, kw_only=True):
    pile: Pile
    algorithm: Literal["backward", "forward"] = "backward"
    steps: Number | None = None


class EntropyCommit(Command, kw_only=True):
    round: Number
    k: Number
    digest: Hex32


class EntropyReveal(Command, kw_only=True):
    round: Number
    k: Number
    nonce: Hex32


class DealtPile(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A pile that gets `count` cards of the deal."""

    name: Pile
    count: Count
    face: Face = "down"


class DeckDeal(Command, kw_only=True):
    """`each` may be 0 if there are `piles`, which get their cards after the seats."""

    each: Annotated[int, Meta(ge=0, le=DECK_MAX)] = 1
    seats: Annotated[list[Number], Meta(min_length=1, max_length=100)] | None = None
    piles: Annotated[list[DealtPile], Meta(min_length=1, max_length=64)] | None = None


class DeckDraw(Command, kw_only=True):
    count: Count = 1
    source: End = field(default="top", name="from")


class DeckBurn(Command, kw_only=True):
    count: Count = 1


class DeckCut(Command, kw_only=True):
    at: Number


class DeckReturn(Command, kw_only=True):
    cards: Cards | None = None
    count: Count | None = None
    source: Stack = field(default="hand", name="from")
    where: Where = "top"


class HandDiscard(Command, kw_only=True):
    cards: Cards
    pile: Pile = "discard"
    face: Face = "down"


class HandPlay(Command, kw_only=True):
    cards: Cards
    pile: Pile = "table"
    face: Face = "up"


class HandGive(Command, kw_only=True):
    cards: Cards
    to: Number


class HandPass(Command, kw_only=True):
    """`cards` and `to`; or neither of them, to deliver what was passed."""

    cards: Cards | None = None
    to: Number | None = None

    def __post_init__(self) -> None:
        if (self.cards is None) != (self.to is None):
            raise ValueError("Object has only one of `cards` and `to`")


class HandShow(Command, kw_only=True):
    """Either `cards`, or `all` of the hand."""

    cards: Cards | None = None
    to: Number | None = None
    all: bool = False

    def __post_init__(self) -> None:
        if self.cards is None and not self.all:
            raise ValueError("Object missing required field `cards`")


class HandReturn(Command, kw_only=True):
    cards: Cards
    where: Where = "top"


class PileDraw(Command, kw_only=True):
    pile: Pile
    count: Count = 1
    source: End = field(default="top", name="from")
    cards: Cards | None = None
    all: bool = False


class PileMove(Command, kw_only=True):
    to: Stack
    pile: Pile | None = None
    source: Stack | None = field(default=None, name="from")
    cards: Cards | None = None
    count: Count | None = None
    where: Where = "top"
    face: Face = "down"
    all: bool = False


class PileTurn(Command, kw_only=True):
    pile: Pile
    cards: Cards | None = None
    all: bool = False


class ResumeToken(Struct, forbid_unknown_fields=True, kw_only=True):
    """A token, and the last version that its holder has seen; by default the current one."""

    table: Text
    token: Text
    after: Version | None = None


class SessionHello(Params, kw_only=True):
    """`key` is the secret of a service that cannot set headers."""

    key: Annotated[str, Meta(max_length=256)] | None = None
    tokens: Annotated[list[ResumeToken], Meta(max_length=64)] = []
