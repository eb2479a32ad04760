"""Poker variants of the hand history format: their codes and how each is dealt.

The rules of a table may say `game`: one of the words below, or the code itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dealer.game.cards import STANDARD


@dataclass(frozen=True)
class Street:
    """The cards dealt before a betting round: to each hand, to the board, or by a draw."""

    hand: int = 0
    board: int = 0
    up: bool = False  # whether the last card of each hand is dealt face up
    draw: bool = False


@dataclass(frozen=True)
class Variant:
    """A variant; `stakes` are the lowest that the format allows, since bets are unknown."""

    code: str
    name: str
    streets: tuple[Street, ...]
    stakes: Mapping[str, int]
    deck: frozenset[str] = frozenset(STANDARD)
    low: bool = False  # whether the lowest open hand acts first

    @property
    def stud(self) -> bool:
        return "bring_in" in self.stakes

    @property
    def draw(self) -> bool:
        return self.streets[-1].draw


def _board(hand: int) -> tuple[Street, ...]:
    return (Street(hand=hand), Street(board=3), Street(board=1), Street(board=1))


def _draw(hand: int, draws: int) -> tuple[Street, ...]:
    return (Street(hand=hand), *[Street(draw=True)] * draws)


_STUD = (Street(hand=3, up=True), *[Street(hand=1, up=True)] * 3, Street(hand=1))
_ANY_BET = {"min_bet": 1}
_LIMIT = {"small_bet": 1, "big_bet": 2}
_BRING_IN = {"bring_in": 1, "small_bet": 2, "big_bet": 4}
_SHORT = frozenset(card for card in STANDARD if card[0] not in "2345")

GAMES = {
    "holdem": Variant("NT", "hold'em", _board(2), _ANY_BET),
    "limit-holdem": Variant("FT", "limit hold'em", _board(2), _LIMIT),
    "short-deck": Variant("NS", "short-deck hold'em", _board(2), _ANY_BET, _SHORT),
    "omaha": Variant("PO", "Omaha", _board(4), _ANY_BET),
    "omaha-8": Variant("FO/8", "Omaha eight or better", _board(4), _LIMIT),
    "stud": Variant("F7S", "seven card stud", _STUD, _BRING_IN),
    "stud-8": Variant("F7S/8", "seven card stud eight or better", _STUD, _BRING_IN),
    "razz": Variant("FR", "razz", _STUD, _BRING_IN, low=True),
    "single-draw": Variant("N2L1D", "deuce-to-seven single draw", _draw(5, 1), _ANY_BET),
    "triple-draw": Variant("F2L3D", "deuce-to-seven triple draw", _draw(5, 3), _LIMIT),
    "badugi": Variant("FB", "badugi", _draw(4, 3), _LIMIT),
}
"""Variants by the value of `game` in a table's rules."""

CODES = {variant.code: variant for variant in GAMES.values()}


def find(word: object) -> Variant | None:
    """The variant with this name or code; None if the format has none."""
    return (GAMES.get(word) or CODES.get(word)) if isinstance(word, str) else None
