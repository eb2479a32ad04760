"""Reconstruction of one poker hand from the movements of its cards.

The log contains no bets, so only what follows from the cards is written: a player who got or showed
cards later stayed in (check or call); a hand discarded unseen is a fold, or a muck after others
have shown. A draw is written with all discards before all new cards, as the format requires; a
player without discards stands pat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dealer.errors import HistoryUnavailable
from dealer.game.cards import RANKS, UNKNOWN
from dealer.history.poker.actions import (
    Action,
    BoardCard,
    Burned,
    Dealt,
    Discarded,
    HandTimeline,
    Shown,
)
from dealer.history.poker.variants import Variant

_ACE_LOW = RANKS
_ACE_HIGH = RANKS[1:] + RANKS[0]


class Hand:
    """A poker hand in PHH notation.

    `players` are names by seat, in the order p1, p2 …; `actions` are the action lines. Raises
    HistoryUnavailable if the cards of `round` were not dealt as the variant requires.
    """

    def __init__(self, variant: Variant, actions: Sequence[Action], *, round: int) -> None:
        self.players: dict[int, str] = {}
        for action in actions:
            if isinstance(action, Dealt):
                self.players.setdefault(action.seat, action.name)
        if len(self.players) < 2:
            raise HistoryUnavailable(f"In round {round} fewer than two hands were dealt cards.")
        self.actions: list[str] = []
        self._variant, self._round = variant, round
        self._timeline = HandTimeline(actions)
        self._numbers = {seat: f"p{n}" for n, seat in enumerate(self.players, 1)}
        self._active = list(self.players)
        self._hands: dict[int, list[str]] = {seat: [] for seat in self.players}
        self._open: dict[int, list[str]] = {seat: [] for seat in self.players}
        self._shown: dict[int, list[str]] = {seat: [] for seat in self.players}
        self._folding: list[int] = []  # discarded hands whose fold is not written yet
        self._late_mucks: list[int] = []  # hands discarded after the first show
        self._showdown: dict[int, bool] = {}  # seat → whether it showed, in order
        self._comments: list[str] = []  # comments to be written before the next action
        self._street = -1
        self._start_street()
        for place, action in enumerate(actions):
            self._apply(place, action)
        self._end()

    def _apply(self, place: int, action: Action) -> None:
        match action:
            case Dealt(seat, _, card):
                self._deal(seat, card)
            case BoardCard(card):
                self._deal_board(card)
            case Burned(card):
                self._comments.append(f"# Burned: {card}")
            case Discarded(seat, card):
                if place > self._timeline.dealt[seat] and seat in self._timeline.gone:
                    if place == self._timeline.gone[seat]:
                        self._muck(place, seat)
                else:
                    self._discard(seat, card)
            case Shown(seat, card):
                self._shown[seat].append(card)
                if card in self._open[seat]:
                    return
                if place >= self._timeline.showdown:
                    self._showdown[seat] = True
                else:
                    self._comments.append(f"# {self._numbers[seat]} shows {card}")

    def _start_street(self) -> None:
        """Start the next street."""
        self._street += 1
        if self._street == len(self._variant.streets):
            raise self._not_this_variant()
        street = self._variant.streets[self._street]
        self._missing = dict.fromkeys(self._active, street.hand)
        self._board = street.board
        self._discards: dict[int, list[str]] = {seat: [] for seat in self._active}
        self._drawn: list[tuple[int, str]] = []

    def _next_street(self) -> None:
        """End a street: all cards are dealt; every remaining player stays in or folds."""
        if not self._complete():
            raise self._not_this_variant()
        self._write_draw()
        self._write_bets()
        if not self._over:
            self._start_street()

    @property
    def _over(self) -> bool:
        return len(self._active) == 1

    @property
    def _drawing(self) -> bool:
        return self._variant.streets[self._street].draw

    def _complete(self) -> bool:
        taken = Counter(seat for seat, _ in self._drawn)
        drawn = all(len(cards) == taken[seat] for seat, cards in self._discards.items())
        return drawn and not self._board and not any(self._missing.values())

    def _deal(self, seat: int, card: str) -> None:
        if not self._over and not self._drawing and not self._missing.get(seat):
            self._next_street()
        if self._over:
            self._comments.append(f"# Dealt to {self._numbers[seat]}: {card}")
        elif self._drawing:
            if sum(card == seat for card, _ in self._drawn) == len(self._discards.get(seat, ())):
                raise self._not_this_variant()
            self._drawn.append((seat, card))
            self._hands[seat].append(card)
        elif self._missing.get(seat):
            self._missing[seat] -= 1
            self._hands[seat].append(card)
            if self._variant.streets[self._street].up and not self._missing[seat]:
                self._open[seat].append(card)
            self._write(f"d dh {self._numbers[seat]} {card}")
        else:
            raise self._not_this_variant()

    def _deal_board(self, card: str) -> None:
        if not self._over and not self._board:
            self._next_street()
        if self._over:
            self._comments.append(f"# BoardCard up: {card}")
        elif not self._board or any(self._missing.values()):
            raise self._not_this_variant()
        else:
            self._board -= 1
            if self.actions[-1].startswith("d db ") and not self._comments:
                self.actions[-1] += card
            else:
                self._write(f"d db {card}")

    def _discard(self, seat: int, card: str) -> None:
        """A single card discarded by a player who stays in."""
        if not self._variant.draw:
            self._comments.append(f"# {self._numbers[seat]} puts {card} away")
            return
        if not self._over and (not self._drawing or any(card == seat for card, _ in self._drawn)):
            self._next_street()
        if self._over:
            self._comments.append(f"# {self._numbers[seat]} discards {card}")
            return
        self._discards[seat].append(card)
        self._hands[seat].remove(card)

    def _muck(self, place: int, seat: int) -> None:
        if place < self._timeline.showdown:
            self._folding.append(seat)
        else:
            self._late_mucks.append(seat)
            self._showdown.setdefault(seat, False)

    def _write(self, action: str) -> None:
        self.actions += self._comments
        self._comments = []
        self.actions.append(action)

    def _write_draw(self) -> None:
        if not self._drawing:
            return
        for seat in self._active:
            discards = "".join(self._discards[seat])
            self.actions.append(f"{self._numbers[seat]} sd {discards}".rstrip())
        for seat, card in self._drawn:
            self._write(f"d dh {self._numbers[seat]} {card}")

    def _write_bets(self, *, upto: int | None = None) -> None:
        """Write a check, call or fold of each remaining player in order, up to seat `upto`."""
        order = self._order()
        brings_in = self._variant.stud and self._street == 0
        for seat in order:
            if self._over:
                return
            folds = seat in self._folding
            if brings_in and seat == order[0]:
                if folds:
                    raise HistoryUnavailable(
                        f"In round {self._round} the seat that had to bring in folded first, "
                        "which this format cannot represent."
                    )
                self.actions.append(f"{self._numbers[seat]} pb")
            else:
                self.actions.append(f"{self._numbers[seat]} {'f' if folds else 'cc'}")
            if folds:
                self._folding.remove(seat)
                self._active.remove(seat)
            if seat == upto:
                return

    def _order(self) -> list[int]:
        """The remaining seats in the order of betting on this street."""
        if not self._variant.stud:
            return list(self._active)
        low = self._variant.low
        if self._street == 0:
            opener = bring_in({seat: self._open[seat][0] for seat in self._active}, low=low)
        else:
            opener = best_open({seat: self._open[seat] for seat in self._active}, low=low)
        start = self._active.index(opener)
        return self._active[start:] + self._active[:start]

    @property
    def _last_street(self) -> bool:
        return self._street == len(self._variant.streets) - 1

    def _end(self) -> None:
        while self._variant.draw and self._showdown and not self._over and not self._last_street:
            self._next_street()
        shown = False
        if not self._over:
            if any(self._missing.values()) or (self._drawing and not self._complete()):
                raise HistoryUnavailable(
                    f"Round {self._round} was closed before all cards were dealt."
                )
            self._write_draw()
            shown = self._last_bets(final=self._last_street and self._complete())
        for seat, showed in self._showdown.items():
            self._write_showdown(seat, showed=showed, shown=shown)
        self.actions += self._comments

    def _last_bets(self, *, final: bool) -> bool:
        """Write the last bets as far as they are known; returns whether a showdown follows."""
        if not final:
            self._folding += self._late_mucks
        if len(self._folding) == len(self._active):
            self._folding.pop()  # the last hand to be discarded wins, so it did not fold
        left = len(self._active) - len(self._folding)
        shown = final and bool(self._showdown) and left > 1
        if shown or left == 1:
            self._write_bets()
        elif self._folding:
            self._last_folds()
        return shown

    def _last_folds(self) -> None:
        """Write folds after the last card, if several hands remain; later bets are unknown."""
        order = self._order()
        folds = [seat for seat in order if seat in self._folding]
        if self._variant.stud and not self._last_street and folds[-1] == order[-1]:
            # A complete betting round would make PokerKit expect the cards of the next street.
            self._comments.append(f"# {self._numbers[folds.pop()]} puts its hand away")
        if folds:
            self._write_bets(upto=folds[-1])

    def _write_showdown(self, seat: int, *, showed: bool, shown: bool) -> None:
        cards = [card for card in self._hands[seat] if card in self._shown[seat]]
        hidden = len(self._hands[seat]) - len(cards)
        number = self._numbers[seat]
        if showed and seat in self._active and (shown or (self._over and not hidden)):
            self._write(f"{number} sm {''.join(cards)}{UNKNOWN * hidden}")
        elif showed:
            self._comments.append(f"# {number} shows {' '.join(cards)}")
        elif shown and seat in self._active:
            self._write(f"{number} sm")

    def _not_this_variant(self) -> HistoryUnavailable:
        return HistoryUnavailable(
            f"Round {self._round} was not dealt as {self._variant.name}; use the plain text "
            "history."
        )


def bring_in(cards: Mapping[int, str], *, low: bool) -> int:
    """The seat with the lowest card or, in `low` games, the highest card with the ace low."""
    if low:
        return max(cards, key=lambda seat: (_ACE_LOW.index(cards[seat][0]), cards[seat][1]))
    return min(cards, key=lambda seat: (_ACE_HIGH.index(cards[seat][0]), cards[seat][1]))


def best_open(hands: Mapping[int, Sequence[str]], *, low: bool) -> int:
    """The seat with the best one to four open cards; the first seat if several are equal."""
    if low:
        return min(hands, key=lambda seat: _strength(hands[seat], _ACE_LOW))
    return max(hands, key=lambda seat: _strength(hands[seat], _ACE_HIGH))


def _strength(cards: Sequence[str], ranks: str) -> tuple[list[int], list[int]]:
    """Sort key: pairs and better before ranks; four cards form no straight or flush."""
    counts = Counter(ranks.index(card[0]) for card in cards)
    order = sorted(counts, key=lambda rank: (counts[rank], rank), reverse=True)
    return [counts[rank] for rank in order], order
