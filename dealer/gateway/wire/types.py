"""Types of members: texts, numbers and choices with their limits, and what is said of them.

All that the documents say of a member is written with its type, here and in the other modules of
this package: `Meta` has the title and the description of a type, and its limits; a text in
`Annotated` says what a member of that type means. Members that mean the same in several places have
a type of their own. Generated programs name their types after the titles; a type without limits may
do without one (`dealer.gateway.schema.json_schema`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dealer.game.cards import DECK_MAX

REF = "#/components/schemas/"


def component(title: str) -> Meta:
    """A member's `Meta` if the documents describe it by another type, with this title."""
    return Meta(extra_json_schema={"$ref": REF + title})


# A text of PostgreSQL cannot contain U+0000: the insert of such an id would fail.
NO_NUL = r"^[^\x00]*$"

ShortText = Annotated[
    str, Meta(title="ShortText", max_length=256, description="At most 256 characters.")
]
Hash = Annotated[str, Meta(title="Hash", pattern="^[0-9a-f]{64}$", description="32 bytes in hex.")]
WHOLE = Meta(title="WholeNumber", ge=0, le=2**32 - 1, description="From 0 to 2^32 - 1.")
WholeNumber = Annotated[int, WHOLE]
LongNumber = Annotated[int, Meta(title="LongNumber", ge=0, le=2**53 - 1)]
VersionNumber = Annotated[int, Meta(title="VersionNumber", ge=1, le=2**53 - 1)]
CardCode = Annotated[
    str,
    Meta(
        title="CardCode",
        min_length=1,
        max_length=16,
        description="The code of a card, such as `As`.",
    ),
]
CardCodes = Annotated[
    list[CardCode],
    Meta(
        title="CardCodes",
        min_length=1,
        max_length=DECK_MAX,
        description="Codes of cards, each once.",
    ),
]
CardOrSlot = Annotated[
    CardCode | WholeNumber,
    Meta(
        title="CardOrSlot", description="A card: its code, or its slot where its face is not known."
    ),
]
CardsOrSlots = Annotated[
    list[CardOrSlot], Meta(title="CardsOrSlots", min_length=1, max_length=DECK_MAX)
]
Algorithm = Annotated[
    Literal["backward", "forward"],
    Meta(
        title="Algorithm",
        description="A shuffle: `backward` (from the top) or `forward` (from the bottom).",
    ),
]
EntropySource = Annotated[
    Literal["players", "house"],
    Meta(
        title="EntropySource",
        description="Whose random bytes shuffle: the house's, and the players' or not.",
    ),
]
StackEnd = Annotated[
    Literal["top", "bottom"], Meta(title="StackEnd", description="An end of a stack.")
]
PlaceOfCards = Annotated[
    StackEnd | WholeNumber,
    Meta(title="PlaceOfCards", description="`top`, `bottom`, or a place, 0 the bottom."),
]
StackEndOrRandom = Annotated[
    Literal["top", "bottom", "random"],
    Meta(title="StackEndOrRandom", description="An end of a stack, or cards at random places."),
]
FaceOfCards = Annotated[
    Literal["up", "down"], Meta(title="Face", description="Whether cards lie face up or face down.")
]
TableCondition = Annotated[
    Literal["open", "closed", "archived"],
    Meta(
        title="TableCondition",
        description="Whether a table is open, closed, or closed and archived.",
    ),
]
StackReference = Annotated[str, Meta(title="StackReference", min_length=1, max_length=37)]
TableId = Annotated[str, Meta(title="TableId", pattern="^[0-9a-f]{32}$")]
NoteKind = Annotated[str, Meta(title="NoteKind", pattern="^[a-z0-9._-]{1,64}$")]
NumberedHash = Annotated[
    tuple[int, str],
    Meta(title="NumberedHash", description="The number of a seat or slot, and 32 bytes in hex."),
]
