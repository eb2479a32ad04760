"""One hand of poker, put together from what was done with the cards.

The dealer saw no bets, so only what the cards tell is written: that a player stayed in (a check or
call) where more was dealt or shown after, and that a hand was put away unseen (a fold, or a muck
once others had shown). A draw is written as the format has it, all discards before all new cards;
who is asked and changes nothing stands pat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dealer.errors import NoHistory
from dealer.game.cards import UNKNOWN
from dealer.history.deeds import Burned, Course, Dealt, Deed, Shown, Thrown, Turned
from dealer.history.openers import best_open, bring_in
from dealer.history.variants import Variant


class Hand:
    """`players` are names by seat, in the order of the format's p1, p2 …; `actions` its actions.

    Raises NoHistory where the cards of `round` did not go the way of the variant.
    """

    def __init__(self, variant: Variant, deeds: Sequence[Deed], *, round: int) -> None:
        self.players: dict[int, str] = {}
        for deed in deeds:
            if isinstance(deed, Dealt):
                self.players.setdefault(deed.seat, deed.name)
        if len(self.players) < 2:
            raise NoHistory(f"In round {round} cards came to fewer than two hands.")
        self.actions: list[str] = []
        self._variant, self._round = variant, round
        self._course = Course(deeds)
        self._numbers = {seat: f"p{n}" for n, seat in enumerate(self.players, 1)}
        self._active = list(self.players)
        self._hands: dict[int, list[str]] = {seat: [] for seat in self.players}
        self._open: dict[int, list[str]] = {seat: [] for seat in self.players}
        self._shown: dict[int, list[str]] = {seat: [] for seat in self.players}
        self._away: list[int] = []  # hands put away that are not written as folded yet
        self._late: list[int] = []  # those put away once somebody had shown
        self._showdown: dict[int, bool] = {}  # seat → whether it showed, in their order
        self._aside: list[str] = []  # commentary for the next card
        self._street = -1
        self._enter()
        for place, deed in enumerate(deeds):
            self._do(place, deed)
        self._end()

    def _do(self, place: int, deed: Deed) -> None:
        match deed:
            case Dealt(seat, _, card):
                self._deal(seat, card)
            case Turned(card):
                self._turn(card)
            case Burned(card):
                self._aside.append(f"# Burned: {card}")
            case Thrown(seat, card):
                if place > self._course.dealt[seat] and seat in self._course.gone:
                    if place == self._course.gone[seat]:
                        self._put_away(place, seat)
                else:
                    self._discard(seat, card)
            case Shown(seat, card):
                self._shown[seat].append(card)
                if card in self._open[seat]:
                    return
                if place >= self._course.showdown:
                    self._showdown[seat] = True
                else:
                    self._aside.append(f"# {self._numbers[seat]} shows {card}")

    def _enter(self) -> None:
        """The next street begins."""
        self._street += 1
        if self._street == len(self._variant.streets):
            raise self._astray()
        street = self._variant.streets[self._street]
        self._missing = dict.fromkeys(self._active, street.hand)
        self._board = street.board
        self._discards: dict[int, list[str]] = {seat: [] for seat in self._active}
        self._drawn: list[tuple[int, str]] = []

    def _next_street(self) -> None:
        """Everybody has their cards, and who is still in stays in or folds."""
        if not self._complete():
            raise self._astray()
        self._write_draw()
        self._speak()
        if not self._over:
            self._enter()

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
            self._aside.append(f"# Dealt to {self._numbers[seat]}: {card}")
        elif self._drawing:
            if sum(one == seat for one, _ in self._drawn) == len(self._discards.get(seat, ())):
                raise self._astray()
            self._drawn.append((seat, card))
            self._hands[seat].append(card)
        elif self._missing.get(seat):
            self._missing[seat] -= 1
            self._hands[seat].append(card)
            if self._variant.streets[self._street].up and not self._missing[seat]:
                self._open[seat].append(card)
            self._write(f"d dh {self._numbers[seat]} {card}")
        else:
            raise self._astray()

    def _turn(self, card: str) -> None:
        if not self._over and not self._board:
            self._next_street()
        if self._over:
            self._aside.append(f"# Turned up: {card}")
        elif not self._board or any(self._missing.values()):
            raise self._astray()
        else:
            self._board -= 1
            if self.actions[-1].startswith("d db ") and not self._aside:
                self.actions[-1] += card
            else:
                self._write(f"d db {card}")

    def _discard(self, seat: int, card: str) -> None:
        """A card thrown away by somebody who stays in."""
        if not self._variant.draw:
            self._aside.append(f"# {self._numbers[seat]} puts {card} away")
            return
        if not self._over and (not self._drawing or any(one == seat for one, _ in self._drawn)):
            self._next_street()
        if self._over:
            self._aside.append(f"# {self._numbers[seat]} discards {card}")
            return
        self._discards[seat].append(card)
        self._hands[seat].remove(card)

    def _put_away(self, place: int, seat: int) -> None:
        if place < self._course.showdown:
            self._away.append(seat)
        else:
            self._late.append(seat)
            self._showdown.setdefault(seat, False)

    def _write(self, action: str) -> None:
        self.actions += self._aside
        self._aside = []
        self.actions.append(action)

    def _write_draw(self) -> None:
        if not self._drawing:
            return
        for seat in self._active:
            discards = "".join(self._discards[seat])
            self.actions.append(f"{self._numbers[seat]} sd {discards}".rstrip())
        for seat, card in self._drawn:
            self._write(f"d dh {self._numbers[seat]} {card}")

    def _speak(self, *, upto: int | None = None) -> None:
        """Whoever is still in says so or folds, in their order, the last one `upto` if given."""
        order = self._order()
        brings_in = self._variant.stud and self._street == 0
        for seat in order:
            if self._over:
                return
            folds = seat in self._away
            if brings_in and seat == order[0]:
                if folds:
                    raise NoHistory(
                        f"In round {self._round} the seat that had to bring in put its hand away "
                        "at once, which this format cannot say."
                    )
                self.actions.append(f"{self._numbers[seat]} pb")
            else:
                self.actions.append(f"{self._numbers[seat]} {'f' if folds else 'cc'}")
            if folds:
                self._away.remove(seat)
                self._active.remove(seat)
            if seat == upto:
                return

    def _order(self) -> list[int]:
        """Who is still in, in the order in which they speak in this street."""
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
                raise NoHistory(f"Round {self._round} ended before everybody had their cards.")
            self._write_draw()
            shown = self._last_words(final=self._last_street and self._complete())
        for seat, showed in self._showdown.items():
            self._write_showdown(seat, showed=showed, shown=shown)
        self.actions += self._aside

    def _last_words(self, *, final: bool) -> bool:
        """Whoever still has to speaks, as far as is known; whether there is a showdown then."""
        if not final:
            self._away += self._late
        if len(self._away) == len(self._active):
            self._away.pop()  # who puts the last hand away has outlasted the others
        left = len(self._active) - len(self._away)
        shown = final and bool(self._showdown) and left > 1
        if shown or left == 1:
            self._speak()
        elif self._away:
            self._last_folds()
        return shown

    def _last_folds(self) -> None:
        """Folds after the last card, with several hands left; nobody speaks after the last one."""
        order = self._order()
        folds = [seat for seat in order if seat in self._away]
        if self._variant.stud and not self._last_street and folds[-1] == order[-1]:
            # All would have spoken, and PokerKit deal the next street face down and stumble on it.
            self._aside.append(f"# {self._numbers[folds.pop()]} puts its hand away")
        if folds:
            self._speak(upto=folds[-1])

    def _write_showdown(self, seat: int, *, showed: bool, shown: bool) -> None:
        cards = [card for card in self._hands[seat] if card in self._shown[seat]]
        hidden = len(self._hands[seat]) - len(cards)
        number = self._numbers[seat]
        if showed and seat in self._active and (shown or (self._over and not hidden)):
            self._write(f"{number} sm {''.join(cards)}{UNKNOWN * hidden}")
        elif showed:
            self._aside.append(f"# {number} shows {' '.join(cards)}")
        elif shown and seat in self._active:
            self._write(f"{number} sm")

    def _astray(self) -> NoHistory:
        return NoHistory(
            f"Round {self._round} was not dealt as {self._variant.name} is; the plain text history "
            "tells how it went."
        )
