"""PokerKit reads the cards of each player and the board of any poker hand as they were dealt."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import HistoryUnavailable
from dealer.history import phh
from dealer.history.phh import GAMES, Variant
from tests.history.poker import Poker, PokerKitReading

pytestmark = pytest.mark.slow


class Hand:
    """A randomly played hand and its expected history; seats in the order of the deal."""

    def __init__(self, word: str, data: st.DataObject) -> None:
        self.variant: Variant = GAMES[word]
        self.data = data
        players = self.pick(st.integers(2, 6))
        button = self.pick(st.integers(0, players - 1))
        seats = [*range(1, players + 1)]
        self.order = seats[button:] + seats[:button]
        deck = sorted(self.variant.deck)
        self.poker = Poker(word, players=players, deck=deck, seed=self.pick(st.integers(0, 10**6)))
        self.active = list(self.order)
        self.dealt: dict[int, list[str]] = defaultdict(list)
        self.discards: dict[int, list[str]] = defaultdict(list)
        self.board: list[str] = []
        self.shown: dict[int, list[str]] = {}

    def pick(self, choices: st.SearchStrategy):
        return self.data.draw(choices)

    def play(self) -> None:
        for number, street in enumerate(self.variant.streets):
            if number:
                self.fold()
                if len(self.active) == 1 or self.pick(st.integers(0, 9)) == 0:
                    return
                if self.pick(st.booleans()):
                    self.poker.burn()
            if street.hand:
                self.deal(street.hand)
            if street.board:
                self.poker.board(street.board)
                self.board = self.poker.cards("pile:board")
            if street.draw:
                self.draw()
            if street.up:
                for seat in self.active:
                    self.poker.show(seat, self.poker.hand(seat)[-1:])
        self.fold()
        if len(self.active) > 1:
            self.show_down()

    def deal(self, each: int) -> None:
        self.poker.deal(each, self.active)
        for seat in self.active:
            self.dealt[seat] += self.poker.hand(seat)[-each:]

    def draw(self) -> None:
        for seat in self.active:
            hand = self.poker.hand(seat)
            most = max(0, min(3, len(self.poker.cards("deck")) - 1))
            chosen = self.pick(st.lists(st.sampled_from(hand), unique=True, max_size=most))
            if chosen:
                self.poker.discard(seat, chosen)
                self.poker.draw(seat, len(chosen))
                self.discards[seat] += chosen
                self.dealt[seat] += self.poker.hand(seat)[-len(chosen) :]

    def fold(self) -> None:
        """Some players discard their hands, but never all."""
        for seat in list(self.active):
            if len(self.active) > 1 and self.pick(st.integers(0, 5)) == 0:
                self.poker.discard(seat)
                self.active.remove(seat)

    def show_down(self) -> None:
        order = self.pick(st.permutations(self.active))
        self.poker.show(order[0])
        self.shown[order[0]] = self.poker.hand(order[0])
        for seat in order[1:]:
            what = self.pick(st.sampled_from(["show", "muck", "nothing"]))
            if what == "show":
                self.shown[seat] = self.poker.hand(seat)
                self.poker.show(seat)
            elif what == "muck":
                self.poker.discard(seat)


@pytest.mark.parametrize("word", GAMES)
@given(data=st.data())
def test_pokerkit_reads_the_cards_as_dealt(word, data) -> None:
    hand = Hand(word, data)
    hand.play()
    try:
        text = phh.write(hand.poker.close(), round=1)
    except HistoryUnavailable as error:
        text, reason = "", str(error)
    if not text:
        assert "bring in" in reason
        return
    read = PokerKitReading(text)
    read.assert_as_written()
    numbers = {seat: number for number, seat in enumerate(hand.order, 1)}
    assert read.history.seats == hand.order
    assert read.hole == {numbers[seat]: cards for seat, cards in hand.dealt.items()}
    assert read.boards == hand.board
    away = {f"# p{player} puts its hand away" for player in range(1, 7)} & {*read.commentary}
    folded = read.folded | {int(action[3]) for action in away}
    assert folded == {numbers[seat] for seat in hand.order if seat not in hand.active}
    assert not away or hand.variant.stud
    for seat, cards in hand.discards.items():
        assert read.discards[numbers[seat]] == cards
    shown = {numbers[seat]: cards for seat, cards in hand.shown.items()}
    assert {player: sorted(cards) for player, cards in read.shown.items()} == {
        player: sorted(cards) for player, cards in shown.items()
    }
