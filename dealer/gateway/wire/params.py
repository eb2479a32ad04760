"""Parameters of each method; an unknown member is an error.

Types are validated while the frame is decoded. `table` may be omitted on a connection that is on
one table only. The description of a parameter that is not required says what happens without it
("may be left out"), where its default does not; a test compares it with the schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from dealer.game import events
from dealer.game.cards import DECK_MAX, SHOE_MAX
from dealer.gateway.wire import types as t

# What members mean.
Cmd = Annotated[
    str,
    Meta(title="CommandId", min_length=1, max_length=64, pattern=t.NO_NUL),
    "the caller's id of this command: sent again, it is executed once; may be left out",
]
Expected = Annotated[
    t.LongNumber, "refuse the command if the table is past this version; may be left out"
]
Ref = Annotated[str, Meta(title="ServiceReference", min_length=1, max_length=256, pattern=t.NO_NUL)]
Table = Annotated[
    t.ShortText, "id of the table; may be left out on a connection that is at one table only"
]
ReturnToken = Annotated[t.ShortText, "authenticates the seat or the host who returns; secret"]
Seat = Annotated[events.Seat, t.WHOLE]
ToSeat = Annotated[t.WholeNumber, "the seat that receives the cards"]
Round = Annotated[events.Round, t.WHOLE]
ShuffleIndex = Annotated[events.ShuffleIndex, t.WHOLE]
Bot = Annotated[bool, "whether the player is a program, as it or its service says"]
CARDS = "codes, or slots where a face is not known"
Cards = Annotated[t.CardsOrSlots, "codes (`As`, `Td`), or slots where a face is not known"]
Count = Annotated[Annotated[int, Meta(title="CardCount", ge=1, le=DECK_MAX)], "how many cards"]
All = Annotated[bool, "all cards, which keep their order, instead of `cards` or `count`"]
Steps = Annotated[t.WholeNumber, "shuffle only so many cards; may be left out for the whole stack"]
ByAlgorithm = Annotated[t.Algorithm, "`backward` (from the top) or `forward` (from the bottom)"]
From = Annotated[t.StackEndOrRandom, "where the cards come from"]
Where = Annotated[t.PlaceOfCards, "`top`, `bottom`, or a place, 0 the bottom"]
Face = Annotated[t.FaceOfCards, "whether the cards lie face up or face down"]
Pile = Annotated[t.StackReference, "name of a pile, with or without `pile:`"]


class Shoe(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Several decks as one, each of `cards` (by default 52 standard cards) plus `jokers` jokers."""

    decks: Annotated[int, Meta(title="DeckCount", ge=1, le=SHOE_MAX), "how many decks"] = 1
    jokers: Annotated[
        int, Meta(title="JokerCount", ge=0, le=2), "how many jokers each deck has besides"
    ] = 0
    cards: Annotated[
        t.CardCodes | None, "codes of one deck; may be left out for the 52 standard cards"
    ] = None


DeckName = Annotated[
    Literal["52", "54"],
    Meta(title="DeckName", description="`52`: the standard cards; `54`: the same and two jokers."),
]
DECK = "`52`, `54` (with jokers), codes bottom first, or a shoe of several decks."
Deck = Annotated[DeckName | t.CardCodes | Shoe, Meta(title="Deck", description=DECK)]


class Params(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """No parameters."""


class OfTable(Params, kw_only=True):
    table: Table | None = None
    token: Annotated[
        t.ShortText | None,
        "authenticates the seat or the host for whom this is done; secret; may be left out on the "
        "connection that has taken the seat or opened the table",
    ] = None


class Command(OfTable, kw_only=True):
    cmd: Cmd | None = None
    expect: Expected | None = None


class PracticeFrom(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A moment of a closed round, from which a practice table plays on."""

    table: Annotated[t.ShortText, "id of the table: one that anyone may watch, or one's own"]
    round: Round
    version: Annotated[
        t.VersionNumber | None,
        "any version of the round; may be left out for the same shuffle again, nothing dealt",
    ] = None
    token: Annotated[
        t.ShortText | None,
        "authenticates a seat or the host of that table; secret; may be left out where the "
        "connection acts there, or anyone may watch",
    ] = None


class TableOpen(Params, kw_only=True):
    deck: Annotated[
        Deck | None, "the deck of rounds that are opened without their own; may be left out"
    ] = None
    seats: Annotated[
        t.WholeNumber | None, "number of seats, 1 to 100; may be left out for the rules' value"
    ] = None
    rules: Annotated[
        Annotated[dict[str, Any], t.component("Rules")] | None,
        "permissions and settings of the table; may be left out",
    ] = None
    name: Annotated[t.ShortText | None, "name of the table; may be left out"] = None
    ref: Annotated[
        Ref | None,
        "a service's own id of the table, unique for its key: again it names the same table; may "
        "be left out",
    ] = None
    host: Annotated[bool, "false for no host token in the answer, with a service key"] = True
    source: Annotated[
        PracticeFrom | None,
        "open a practice table, with the cards and the rules of this round; then without `deck`, "
        "`seats` and `rules`; may be left out",
    ] = field(default=None, name="from")
    cmd: Cmd | None = None


class TableList(Params, kw_only=True):
    """For services, which list their own tables; others may give `state`, as closed."""

    ref: Annotated[
        Ref | None, "only the table with this id of the service; may be left out for all"
    ] = None
    state: Annotated[
        t.TableCondition | None, "only tables in this condition; may be left out for all"
    ] = None
    after: Annotated[
        t.TableId | None, "list the tables after this id; may be left out for the first page"
    ] = None
    limit: Annotated[
        int, Meta(title="PageSize", ge=1, le=200), "the most entries of the answer"
    ] = 50


class TableJoin(Params, kw_only=True):
    """Beside a ticket or a JWT `name` counts where the name that these give is taken, or absent."""

    name: Annotated[
        t.ShortText | None, "name of the player; may be left out with a ticket or a JWT"
    ] = None
    table: Table | None = None
    ticket: Annotated[
        Annotated[str, Meta(title="TicketText", max_length=3_100)] | None,
        "a user's right to one seat; for one use, secret; may be left out with a name or a JWT",
    ] = None
    jwt: Annotated[
        Annotated[str, Meta(title="JwtText", max_length=8_192)] | None,
        "a JWT of the operator's issuer; secret; may be left out with a ticket or a name",
    ] = None
    seat: Annotated[
        t.WholeNumber | None, "number of the seat; may be left out for the first free one"
    ] = None
    invite: Annotated[
        t.ShortText | None, "the invitation, if the rules require one; may be left out otherwise"
    ] = None
    key: Annotated[
        t.Hash | None, "an Ed25519 public key with which the player cosigns; may be left out"
    ] = None
    bot: Bot = False
    cmd: Cmd | None = None
    expect: Expected | None = None

    def __post_init__(self) -> None:
        if self.name is None and self.ticket is None and self.jwt is None:
            raise ValueError("Object missing required field `name`, `ticket` or `jwt`")
        if self.ticket is not None and self.jwt is not None:
            raise ValueError("Object has both `ticket` and `jwt`")


class SeatTicket(Params, kw_only=True):
    table: Annotated[t.ShortText, "id of the table"]
    name: Annotated[t.ShortText, "name that the player will have"]
    seat: Annotated[
        t.WholeNumber | None, "number of the seat; may be left out for any free one"
    ] = None
    subject: Annotated[
        Annotated[str, Meta(title="SubjectText", min_length=1, max_length=255, pattern=t.NO_NUL)]
        | None,
        "the service's id of its user, who has one seat at the table on every device; may be left "
        "out",
    ] = None
    bot: Bot = False
    expires_s: Annotated[
        int,
        Meta(title="TicketSeconds", ge=1, le=30 * 86_400),
        "seconds until the ticket expires; at most 30 days",
    ] = 3_600


class FeedFollow(Params, kw_only=True):
    after: Annotated[
        t.ShortText | None, "a position, `start` or `now`; may be left out for `start`"
    ] = None
    table: Annotated[
        t.ShortText | None, "only events of this table; may be left out for all of the service key"
    ] = None
    type: Annotated[
        Annotated[list[t.ShortText], Meta(max_length=64)] | None,
        "only events of these types; may be left out for all",
    ] = None


class TableState(OfTable, kw_only=True):
    at: Annotated[
        t.VersionNumber | None,
        "an earlier version, to see the table as it was then; may be left out for now",
    ] = None
    seat: Annotated[
        t.WholeNumber | None,
        "with `at`, for a service: as the player of this seat saw it then, once the round is "
        "closed; may be left out",
    ] = None


AfterVersion = Annotated[
    t.LongNumber,
    "the last version that was seen, 0 for all of it; may be left out for the newest one",
]


class TableWatch(OfTable, kw_only=True):
    after: AfterVersion | None = None
    link: Annotated[
        t.ShortText | None,
        "a broadcast link: what each player has seen is shown, as late as the rule `broadcast` "
        "says, and nothing that is newer; may be left out",
    ] = None


class TableResume(Params, kw_only=True):
    token: ReturnToken
    after: Annotated[t.LongNumber, "the last version that was seen; 0 for all of it"]
    table: Table | None = None


class SeatVacate(Command, kw_only=True):
    seat: Seat
    reason: Annotated[t.ShortText, "why, for all to read; at most 256 bytes"] = ""


class SeatMove(Command, kw_only=True):
    to: Annotated[t.WholeNumber, "number of the free seat"]
    seat: Annotated[
        t.WholeNumber | None,
        "the seat of another player, whom the host asks to move; may be left out for the caller's "
        "own",
    ] = None


class TableTransferHost(Command, kw_only=True):
    seat: Seat


class TableNote(Command, kw_only=True):
    kind: Annotated[t.NoteKind, "kind of the note, such as `poker.bet`"]
    text: Annotated[
        str,
        Meta(title="NoteText", max_length=2048),
        "the note itself, for all to read; at most 2,048 bytes",
    ]


class TableCosign(OfTable, kw_only=True):
    cosignature: Annotated[
        str,
        Meta(title="SignatureText", max_length=1024),
        "a signature line of C2SP's cosignature/v1 over a checkpoint",
    ]
    cmd: Cmd | None = None


class RoundOpen(Command, kw_only=True):
    deck: Annotated[Deck | None, "the cards; may be left out for the rules' deck"] = None
    entropy: Annotated[
        t.EntropySource | None, "whose random bytes shuffle; may be left out for the rules' value"
    ] = None
    commit_ms: Annotated[
        t.WholeNumber | None,
        "how long players may commit to random bytes, in milliseconds; may be left out for the "
        "rules' value",
    ] = None
    reveal_ms: Annotated[
        t.WholeNumber | None,
        "how long players may reveal random bytes, in milliseconds; may be left out for the "
        "rules' value",
    ] = None


class DeckShuffle(Command, kw_only=True):
    stack: Annotated[t.StackReference, "`deck`, or a pile"] = "deck"
    algorithm: ByAlgorithm = "backward"
    steps: Steps | None = None


class PileShuffle(Command, kw_only=True):
    pile: Pile
    algorithm: ByAlgorithm = "backward"
    steps: Steps | None = None


class EntropyCommit(Command, kw_only=True):
    round: Round
    k: ShuffleIndex
    digest: Annotated[t.Hash, "hash of the bytes that are committed to"]


class EntropyReveal(Command, kw_only=True):
    round: Round
    k: ShuffleIndex
    nonce: Annotated[t.Hash, "the bytes that the seat committed to"]


class DealtPile(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A pile that gets `count` cards of the deal."""

    name: Annotated[t.StackReference, "name of the pile, with or without `pile:`"]
    count: Annotated[Count, "how many cards it gets"]
    face: Annotated[t.FaceOfCards, "whether its cards lie face up or face down"] = "down"


class DeckDeal(Command, kw_only=True):
    each: Annotated[
        int,
        Meta(title="CardCountOrNone", ge=0, le=DECK_MAX),
        "how many cards each seat gets; 0 only with `piles`",
    ] = 1
    seats: Annotated[
        Annotated[list[t.WholeNumber], Meta(min_length=1, max_length=100)] | None,
        "seats, in the order in which they get cards; may be left out for all that are taken",
    ] = None
    piles: Annotated[
        Annotated[list[DealtPile], Meta(min_length=1, max_length=64)] | None,
        "piles that get cards after the seats; may be left out",
    ] = None


class DeckDraw(Command, kw_only=True):
    count: Count = 1
    source: From = field(default="top", name="from")


class DeckBurn(Command, kw_only=True):
    count: Count = 1


class DeckCut(Command, kw_only=True):
    at: Annotated[t.WholeNumber, "the place from which the cards go to the bottom; 0 is the bottom"]


class DeckReturn(Command, kw_only=True):
    cards: Annotated[t.CardsOrSlots | None, f"{CARDS}; may be left out for the top cards"] = None
    count: Annotated[
        Count | None, "so many cards from the top; may be left out for one, or with `cards`"
    ] = None
    source: Annotated[t.StackReference, "`hand`, or the pile that the cards come from"] = field(
        default="hand", name="from"
    )
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
    to: ToSeat


class HandPass(Command, kw_only=True):
    cards: Annotated[
        t.CardsOrSlots | None, f"{CARDS}; may be left out, with `to`, to deliver what was passed"
    ] = None
    to: Annotated[
        t.WholeNumber | None, "the seat that receives the cards; may be left out, with `cards`"
    ] = None

    def __post_init__(self) -> None:
        if (self.cards is None) != (self.to is None):
            raise ValueError("Object has only one of `cards` and `to`")


class HandShow(Command, kw_only=True):
    cards: Annotated[t.CardsOrSlots | None, f"{CARDS}; may be left out with `all`"] = None
    to: Annotated[
        t.WholeNumber | None,
        "the only seat that sees the cards; may be left out to show them to everyone",
    ] = None
    all: Annotated[bool, "the whole hand, instead of `cards`"] = False

    def __post_init__(self) -> None:
        if self.cards is None and not self.all:
            raise ValueError("Object missing required field `cards`")


class HandReturn(Command, kw_only=True):
    cards: Cards
    where: Where = "top"


class PileDraw(Command, kw_only=True):
    pile: Pile
    count: Count = 1
    source: From = field(default="top", name="from")
    cards: Annotated[t.CardsOrSlots | None, f"{CARDS}, instead of `count`; may be left out"] = None
    all: All = False


class PileMove(Command, kw_only=True):
    to: Annotated[
        t.StackReference, "the stack that receives the cards: `deck`, a pile, or `hand:<seat>`"
    ]
    pile: Annotated[
        t.StackReference | None, "the pile that the cards come from; may be left out with `from`"
    ] = None
    source: Annotated[
        t.StackReference | None, "the stack that the cards come from; may be left out with `pile`"
    ] = field(default=None, name="from")
    cards: Annotated[t.CardsOrSlots | None, f"{CARDS}; may be left out for the top cards"] = None
    count: Annotated[
        Count | None,
        "so many cards from the top; may be left out for one, or with `cards` or `all`",
    ] = None
    where: Where = "top"
    face: Face = "down"
    all: All = False


class PileTurn(Command, kw_only=True):
    pile: Pile
    cards: Annotated[t.CardsOrSlots | None, f"{CARDS}; may be left out for the top card"] = None
    all: All = False


class ResumeToken(Struct, forbid_unknown_fields=True, kw_only=True):
    """A token, and the last version that its holder has seen; by default the current one."""

    table: Annotated[t.ShortText, "id of the table"]
    token: ReturnToken
    after: AfterVersion | None = None


class SessionHello(Params, kw_only=True):
    key: Annotated[
        t.ShortText | None, "the secret of a service that cannot set headers; may be left out"
    ] = None
    tokens: Annotated[
        list[ResumeToken], Meta(max_length=64), "tables to resume, each with its token"
    ] = []
