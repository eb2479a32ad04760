"""What a deck is made of: codes like `As` and `Td`, jokers `X1` and `X2`, shoes of several decks.

A card is its code: rank `A23456789TJQK` and suit `shdc`, the poker world's notation (PHH). In a
shoe each code carries its deck, `As.1`, with leading zeros (`As.01`) from ten decks on, because
the codes of one deck all have one length: no length may tell a card.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dealer.errors import BadRequest

RANKS = "A23456789TJQK"
SUITS = "shdc"
STANDARD: tuple[str, ...] = tuple(rank + suit for suit in SUITS for rank in RANKS)
JOKERS: tuple[str, ...] = ("X1", "X2")
UNKNOWN = "??"
DECK_MAX = 1024
SHOE_MAX = 20

_CODE = re.compile(r"[!#-\[\]-~]{1,16}")


def check_deck(codes: Sequence[str]) -> None:
    """Raise BadRequest unless `codes` is a deck: 1…1024 distinct codes, all of one length.

    A code is 1–16 printable ASCII characters without space, `"` and `\\`, and never `??`.
    """
    if not 1 <= len(codes) <= DECK_MAX:
        raise BadRequest(f"A deck has 1 to {DECK_MAX} cards; this one has {len(codes)}.")
    for place, code in enumerate(codes):
        if not isinstance(code, str) or not _CODE.fullmatch(code) or code == UNKNOWN:
            raise BadRequest(
                f"Card {place} of the deck has no valid code: use 1 to 16 printable ASCII "
                f'characters without space, " and \\, other than {UNKNOWN}.'
            )
    if len({len(code) for code in codes}) > 1:
        raise BadRequest("All codes of a deck have one length, so that no length tells a card.")
    if len(set(codes)) != len(codes):
        raise BadRequest("The codes of a deck are distinct; in a shoe give each deck's a suffix.")


def build(
    *, cards: Sequence[str] | None = None, decks: int = 1, jokers: int = 0
) -> tuple[str, ...]:
    """Codes of a fresh deck, bottom first.

    `cards` is one deck's list of codes (52 standard cards if not given), `jokers` 0…2 are added
    to it, and `decks` 1…20 of these make a shoe. Raises BadRequest where that is not a deck.
    """
    if not 1 <= decks <= SHOE_MAX:
        raise BadRequest(f"A shoe has 1 to {SHOE_MAX} decks; {decks} were asked for.")
    if not 0 <= jokers <= len(JOKERS):
        raise BadRequest(f"A deck has 0 to {len(JOKERS)} jokers; {jokers} were asked for.")
    single = (*(STANDARD if cards is None else cards), *JOKERS[:jokers])
    if len(single) * decks > DECK_MAX:
        raise BadRequest(
            f"A deck has 1 to {DECK_MAX} cards; {decks} decks of {len(single)} are too many."
        )
    if decks == 1:
        codes = single
    else:
        width = len(str(decks))
        codes = tuple(f"{code}.{n:0{width}}" for n in range(1, decks + 1) for code in single)
    check_deck(codes)
    return codes
