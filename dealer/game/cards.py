"""Card codes and decks: codes such as `As` and `Td`, jokers `X1` and `X2`, shoes of several decks.

A standard code is a rank of `A23456789TJQK` and a suit of `shdc`, as in the Poker Hand History
format. In a shoe each code has the number of its deck as suffix, `As.1`, or `As.01` from ten decks
on. All codes of a deck have the same length, so that the length of a message reveals no card.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dealer.errors import BadRequest, amount

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
                f"Card {place} of the deck has an invalid code: use 1 to 16 printable ASCII "
                f'characters without space, " and \\, and not {UNKNOWN}.'
            )
    if len({len(code) for code in codes}) > 1:
        raise BadRequest(
            "All codes of a deck must have the same length, so that no length reveals a card."
        )
    if len(set(codes)) != len(codes):
        raise BadRequest(
            "The codes of a deck must be distinct; in a shoe give each deck its own suffix."
        )


def build(
    *, cards: Sequence[str] | None = None, decks: int = 1, jokers: int = 0
) -> tuple[str, ...]:
    """Codes of a fresh deck, bottom first.

    `cards` are the codes of a single deck (by default the 52 standard cards), to which `jokers`
    0…2 are added; a shoe consists of `decks` 1…20 of these. Raises BadRequest if the result is not
    a valid deck.
    """
    if not 1 <= decks <= SHOE_MAX:
        raise BadRequest(f"A shoe has 1 to {SHOE_MAX} decks; {decks} were requested.")
    if not 0 <= jokers <= len(JOKERS):
        raise BadRequest(f"A deck has 0 to {len(JOKERS)} jokers; {jokers} were requested.")
    single = (*(STANDARD if cards is None else cards), *JOKERS[:jokers])
    if len(single) * decks > DECK_MAX:
        given = amount(decks, f"deck of {len(single)} is", f"decks of {len(single)} are")
        raise BadRequest(f"A deck has 1 to {DECK_MAX} cards; {given} too many.")
    if decks == 1:
        codes = single
    else:
        width = len(str(decks))
        codes = tuple(f"{code}.{n:0{width}}" for n in range(1, decks + 1) for code in single)
    check_deck(codes)
    return codes
