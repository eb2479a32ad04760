"""Poker Hand History (PHH) of a closed round, a format that poker programs read.

The format (phh.readthedocs.io) is TOML and requires stakes, which the log does not contain.
Therefore the file has the lowest stakes that the format allows, stacks of unknown size (`inf`) and
no bets. Players are numbered in the order of their first cards. The rules of a table may say
`game`: a name of `GAMES`, or the code itself.

The hand is reconstructed from the movements of its cards, and only what follows from them is
written: a player who got or showed cards later stayed in (check or call); a hand discarded unseen
is a fold, or a muck after others have shown. A draw is written with all discards before all new
cards, as the format requires; a player without discards stands pat.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dealer.errors import HistoryUnavailable
from dealer.game import events
from dealer.game.cards import RANKS, STANDARD, UNKNOWN
from dealer.game.events import RoundOpened
from dealer.game.names import safe_text
from dealer.game.rules import PRACTICE
from dealer.game.stacks import BURN, DECK, DISCARD, seat_of
from dealer.game.state import Round, Table
from dealer.history.replay import Game, ReplayStep
from dealer.history.text import check_round
from dealer.history.times import utc
from dealer.proof.verify.practice import NOT_FAIR


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


def variant_of(word: object) -> Variant | None:
    """The variant with this name or code; None if the format has none."""
    return (GAMES.get(word) or CODES.get(word)) if isinstance(word, str) else None


MUCK = "pile:muck"
DEAD_PILES = (BURN, DISCARD, MUCK)
"""Piles that are not the board; a card moved there from the deck is burned."""


class Dealt(NamedTuple):
    seat: int
    name: str
    card: str


class Burned(NamedTuple):
    card: str


class BoardCard(NamedTuple):
    """A card dealt to the board."""

    card: str


class Discarded(NamedTuple):
    """A card moved from a hand onto a pile or the deck."""

    seat: int
    card: str


class Shown(NamedTuple):
    """A shown card that is or was in a hand."""

    seat: int
    card: str


Action = Dealt | Burned | BoardCard | Discarded | Shown


def actions_of(steps: Iterable[ReplayStep]) -> Iterator[Action]:
    """The actions of one closed round, from all of its steps.

    Raises HistoryUnavailable for a move that poker does not have: between hands, or from a pile
    into a hand.
    """
    holders: dict[int, int] = {}  # slot → the seat whose hand it came to
    for step in steps:
        table, round_ = step.table, step.table.round
        if round_ is None:
            continue
        match step.event:
            case events.CardDrawn(seat=seat, source=source, slot=slot):
                holders[slot] = seat
                yield _dealt_card(table, round_, source=source, seat=seat, slot=slot)
            case events.CardMoved(slot=slot, source=source, to=to):
                taker, giver = seat_of(to), seat_of(source)
                if taker is not None and taker != giver:
                    holders[slot] = taker
                    yield _dealt_card(table, round_, source=source, seat=taker, slot=slot)
                elif taker is None and giver is not None:
                    yield Discarded(giver, round_.face(slot) or UNKNOWN)
                elif source == DECK and to in DEAD_PILES:
                    yield Burned(round_.face(slot) or UNKNOWN)
            case events.CardShown(slot=slot, card=card):
                if slot in holders:
                    yield Shown(holders[slot], card)
                elif round_.stack_of(slot) not in (DECK, *DEAD_PILES):
                    yield BoardCard(card)
            case _:
                pass


def _dealt_card(table: Table, round_: Round, *, source: str, seat: int, slot: int) -> Dealt:
    if source != DECK:
        where = "from another hand" if seat_of(source) is not None else "from a pile"
        raise HistoryUnavailable(
            f"In round {round_.number} seat {seat} took a card {where}, which no poker game of "
            "this format has; use the plain text history."
        )
    player = table.seats.get(seat)
    return Dealt(seat, "" if player is None else player.name, round_.face(slot) or UNKNOWN)


class HandTimeline:
    """When each hand got its last card and was given up, and when the showdown began.

    All are indices of actions: by seat, `dealt` is of its last card and `gone` of the
    discard that left the hand empty for the rest of the round; `showdown` is of the first show
    after the last dealt card, or the number of actions.
    """

    def __init__(self, actions: Sequence[Action]) -> None:
        held: Counter[int] = Counter()
        self.dealt: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.showdown = len(actions)
        for place, action in enumerate(actions):
            match action:
                case Dealt(seat):
                    held[seat] += 1
                    self.dealt[seat] = place
                    self.gone.pop(seat, None)
                    self.showdown = len(actions)
                case BoardCard():
                    self.showdown = len(actions)
                case Discarded(seat):
                    held[seat] -= 1
                    if not held[seat]:
                        self.gone[seat] = place
                case Shown() if self.showdown == len(actions):
                    self.showdown = place
                case _:
                    pass


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


KIND = "application/toml; charset=utf-8"
NOTE = (
    "The log contains cards but no bets: the stakes are the lowest that this format allows, a "
    "check or call means only that a player stayed in, and a fold that a hand was discarded. "
    "Burned cards, and cards shown before the showdown, are comments."
)


def write(game: Game, *, round: int) -> str:
    """The PHH file of one round, as TOML text.

    Raises HistoryUnavailable for a round that does not exist, is not closed, or was not dealt as
    the game of `GAMES` that the table's rules name as `game`.
    """
    check_round(game, round)
    if round > game.closed:
        raise HistoryUnavailable(
            f"Round {round} is not closed; its cards are known only after it is closed."
        )
    steps = (step for step in game.steps() if step.round == round)
    opening = next(steps)
    variant = _variant(opening)
    hand = Hand(variant, list(actions_of(steps)), round=round)
    return "".join(f"{line}\n" for line in _lines(game, opening, variant, hand))


def _variant(opening: ReplayStep) -> Variant:
    word = opening.table.rules.given.get("game")
    variant = variant_of(word)
    if variant is None:
        named = f"name the game {word!r}" if isinstance(word, str) else "name no game"
        raise HistoryUnavailable(
            f"The table's rules {safe_text(named)}; this format supports "
            f"{', '.join(GAMES)}. Use the plain text history for other games."
        )
    deck = opening.event.deck if isinstance(opening.event, RoundOpened) else ()
    if frozenset(deck) != variant.deck:
        raise HistoryUnavailable(
            f"Round {opening.round} was not played with the {len(variant.deck)} cards of "
            f"{variant.name}."
        )
    return variant


def _lines(game: Game, opening: ReplayStep, variant: Variant, hand: Hand) -> Iterator[str]:
    players, at = len(hand.players), utc(opening.at)
    rules = opening.table.rules
    name = rules.given.get("name")
    yield f"variant = {_text(variant.code)}"
    yield f"antes = {[0 if variant.stud else 1] * players}"
    if not variant.stud:
        yield f"blinds_or_straddles = {[0] * players}"
    for stake, amount in variant.stakes.items():
        yield f"{stake} = {amount}"
    yield f"starting_stacks = [{', '.join(['inf'] * players)}]"
    yield "actions = ["
    for action in hand.actions:
        yield f"  {_text(action)},"
    yield "]"
    if isinstance(name, str) and name:
        yield f"event = {_text(name)}"
    yield f"venue = {_text(game.house)}"
    yield f"time = {at:%H:%M:%S}"
    yield 'time_zone = "UTC"'
    yield f"day = {at.day}"
    yield f"month = {at.month}"
    yield f"year = {at.year}"
    yield f"hand = {opening.round}"
    yield f"seats = {list(hand.players)}"
    yield f"seat_count = {rules.seats}"
    yield f"table = {_text(game.table)}"
    yield f"players = [{', '.join(map(_text, hand.players.values()))}]"
    yield f"_table_key = {_text(game.key)}"
    note = f"{NOTE} {NOT_FAIR}" if PRACTICE in rules.given else NOTE
    yield f"_note = {_text(note)}"


def _text(text: str) -> str:
    """A TOML basic string; the JSON string of a printable text is a valid one."""
    return json.dumps(safe_text(text), ensure_ascii=False)
