"""A closed round as PokerKit reads it: the cards of each player and of the board, as dealt."""

from __future__ import annotations

import tomllib

import pokerkit
import pytest

from dealer.errors import HistoryUnavailable
from dealer.game import rules
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, Draw, Move, Show
from dealer.game.decide import seats
from dealer.history import phh
from tests.history.poker import NAMES, Poker, PokerKitReading, game_of
from tests.projector.random_games import HOST


def holdem(**given) -> tuple[Poker, list[str]]:
    """Three hands, a board with burns before each street, and the cards of the board."""
    poker = Poker("holdem", **given)
    poker.deal(2)
    for count in (3, 1, 1):
        poker.burn()
        poker.board(count)
    return poker, poker.cards("pile:board")


def read_back(poker: Poker) -> PokerKitReading:
    """Close the round; returns its file as read by PokerKit, which must apply every action."""
    read = PokerKitReading(phh.write(poker.close(), round=1))
    read.assert_as_written()
    return read


def test_a_holdem_hand_is_read_to_the_showdown() -> None:
    poker, board = holdem()
    hands, burned = [poker.hand(seat) for seat in (1, 2, 3)], poker.cards("pile:burn")
    poker.show(2)
    poker.discard(3)
    poker.show(1)
    text = phh.write(poker.close(), round=1)
    read = PokerKitReading(text)
    read.assert_as_written()
    assert [read.hole[player] for player in (1, 2, 3)] == hands
    assert read.boards == board
    assert read.shown == {1: hands[0], 2: hands[1]}
    assert read.mucked == {3}
    assert read.folded == set()
    assert read.commentary == [f"# Burned: {card}" for card in burned]
    assert not read.state.status
    fields = tomllib.loads(text)
    assert fields["variant"] == "NT"
    assert fields["antes"] == [1, 1, 1]
    assert fields["players"] == list(NAMES[:3])
    assert fields["seats"] == [1, 2, 3]
    assert (fields["hand"], fields["table"]) == (1, poker.played.id.hex())
    assert (fields["year"], fields["month"], fields["day"]) == (2023, 11, 14)
    assert fields["time"].isoformat() == "22:13:20"
    assert fields["time_zone"] == "UTC"
    assert "but no bets" in fields["_note"]


def test_folds_between_streets_are_read() -> None:
    poker = Poker("holdem", players=4)
    poker.deal(2, (3, 4, 1, 2))
    first = poker.hand(3)
    poker.discard(4)
    poker.burn("pile:muck")
    poker.board(2, "flop")
    poker.board(1, "flop")
    poker.discard(1)
    poker.discard(3)
    poker.show(2)
    read = read_back(poker)
    assert read.history.seats == [3, 4, 1, 2]
    assert read.hole[1] == first
    assert read.applied[8:13] == ["p1 cc", "p2 f", "p3 cc", "p4 cc", read.commentary[0]]
    assert [read.applied[14], read.applied[15]] == ["p1 f", "p3 f"]
    assert read.folded == {1, 2, 3}
    assert read.shown.keys() == {4}
    assert not read.state.status


def test_if_all_hands_are_discarded_the_last_one_wins() -> None:
    poker = Poker("holdem")
    poker.deal(2)
    for seat in (2, 3, 1):
        poker.discard(seat)
    read = read_back(poker)
    assert read.folded == {2, 3}
    assert read.state.payoffs == [2, -1, -1]


def test_cards_after_the_hand_was_over_are_commentary() -> None:
    poker = Poker("holdem", players=2)
    poker.deal(2)
    poker.discard(1)
    poker.board(3)
    flop, winner = poker.cards("pile:board"), poker.hand(2)
    poker.show(2)
    read = read_back(poker)
    assert read.boards == []
    assert read.commentary == [f"# BoardCard up: {card}" for card in flop]
    assert read.shown == {2: winner}


def test_a_round_closed_early_is_written_up_to_its_end() -> None:
    poker = Poker("omaha")
    poker.deal(4)
    poker.board(3)
    read = read_back(poker)
    assert len(read.boards) == 3
    assert read.state.status
    assert read.applied[-1].startswith("d db ")


def test_a_card_shown_too_early_and_a_hand_shown_in_part() -> None:
    poker = Poker("holdem", players=2)
    poker.deal(2)
    early, half = poker.hand(1)[0], poker.hand(2)[0]
    poker.show(1, [early])
    for count in (3, 1, 1):
        poker.board(count)
    poker.show(2, [half])
    poker.show(1)
    hand = poker.hand(1)
    read = read_back(poker)
    assert read.commentary == [f"# p1 shows {early}"]
    assert read.shown == {1: hand, 2: [half]}


@pytest.mark.parametrize("game", ["stud", "stud-8", "razz"])
@pytest.mark.parametrize("seed", range(6))
def test_stud_is_opened_by_the_face_up_cards(game, seed) -> None:
    poker = Poker(game, players=4, seed=(game, seed))
    poker.deal(3)
    for street in range(4):
        if street == seed % 4:
            poker.discard(1 + seed % 3)
        poker.burn()
        active = [seat for seat in (1, 2, 3, 4) if poker.hand(seat)]
        poker.deal(1, active)
        for seat in active if street < 3 else ():
            poker.show(seat, poker.hand(seat)[-1:])
    hands = {seat: poker.hand(seat) for seat in active}
    for seat in active:
        poker.show(seat)
    try:
        text = phh.write(poker.close(), round=1)
    except HistoryUnavailable as error:
        text, reason = "", str(error)
    if not text:
        assert "bring in" in reason
        return
    read = PokerKitReading(text)
    read.assert_as_written()
    assert {seat: read.hole[seat] for seat in active} == hands
    assert {seat: sorted(cards) for seat, cards in read.shown.items()} == {
        seat: sorted(cards) for seat, cards in hands.items()
    }
    assert len(read.folded) == 1
    assert len(read.commentary) == 4
    assert read.history.antes == [0, 0, 0, 0]


def test_each_player_draws_in_turn() -> None:
    poker = Poker("single-draw")
    poker.deal(5)
    first = [poker.hand(seat) for seat in (1, 2, 3)]
    poker.discard(1, first[0][:2])
    poker.draw(1, 2)
    poker.discard(3, first[2])
    poker.draw(3, 5)
    last = [poker.hand(seat) for seat in (1, 2, 3)]
    for seat in (1, 2, 3):
        poker.show(seat)
    read = read_back(poker)
    assert read.hole == {1: first[0] + last[0][3:], 2: first[1], 3: first[2] + last[2]}
    assert read.discards == {1: first[0][:2], 2: [], 3: first[2]}
    assert read.shown == {1: last[0], 2: last[1], 3: last[2]}


def test_three_draws_and_a_fold() -> None:
    poker = Poker("badugi")
    poker.deal(4)
    for count in (3, 2):
        for seat in (1, 2, 3):
            if poker.hand(seat):
                poker.discard(seat, poker.hand(seat)[:count])
                poker.draw(seat, count)
        if count == 3:
            poker.discard(2)
    last = {seat: poker.hand(seat) for seat in (1, 3)}
    poker.show(3)
    poker.show(1)
    read = read_back(poker)
    assert read.folded == {2}
    assert read.shown == last
    assert [action for action in read.applied if action.endswith(" sd")] == ["p1 sd", "p3 sd"]


def test_every_game_of_the_format_has_a_word() -> None:
    assert set(phh.CODES) == set(pokerkit.HandHistory.game_types)
    for code, variant in phh.CODES.items():
        deck = [repr(card) for card in pokerkit.HandHistory.game_types[code].deck]
        assert phh.variant_of(code) == variant
        assert variant.deck == set(deck)
        required = pokerkit.HandHistory.required_field_names[code]
        assert set(variant.stakes) <= set(required)
        assert variant.stud is ("bring_in" in required)


def refused(poker: Poker) -> str:
    with pytest.raises(HistoryUnavailable) as caught:
        phh.write(poker.close(), round=1)
    return str(caught.value)


def test_a_round_that_is_no_poker_hand_is_explained() -> None:
    poker = Poker(None)
    poker.deal(2)
    assert "name no game" in refused(poker)

    poker = Poker("bridge\x07")
    poker.deal(2)
    assert "'bridge" in refused(poker)

    poker = Poker("short-deck")
    poker.deal(2)
    assert "36 cards of short-deck hold'em" in refused(poker)

    poker = Poker("holdem")
    assert "fewer than two hands" in refused(poker)

    poker = Poker("holdem")
    poker.deal(1)
    assert "was closed before all cards were dealt" in refused(poker)

    poker = Poker("holdem")
    poker.deal(3)
    assert "was not dealt as hold'em" in refused(poker)

    poker = Poker("holdem")
    poker.board(3)
    poker.deal(2)
    assert "was not dealt as hold'em" in refused(poker)

    poker = Poker("single-draw")
    poker.deal(5)
    poker.discard(1, poker.hand(1)[:2])
    poker.draw(1, 1)
    assert "was closed before all cards were dealt" in refused(poker)

    poker = Poker("single-draw")
    poker.deal(5)
    for _ in range(2):
        poker.discard(1, poker.hand(1)[:1])
        poker.draw(1, 1)
    assert "was not dealt as deuce-to-seven single draw" in refused(poker)


def test_moves_outside_the_hand_are_ignored() -> None:
    """A hand is sorted, and a burned card is turned up."""
    poker, board = holdem()
    low, high = poker.hand(1)
    poker.played.do(Move(Actor(seat=1), "play", "hand:1", "hand:1", (low,)))
    poker.played.do(Show(HOST, "pile:burn"))
    read = read_back(poker)
    assert read.hole[1] == [low, high]
    assert read.boards == board


def test_a_discarded_card_that_is_not_replaced_is_explained() -> None:
    poker = Poker("triple-draw", players=2)
    poker.deal(5)
    poker.discard(1)
    poker.draw(1, 5)
    poker.discard(1, poker.hand(1)[:1])
    assert "was closed before all cards were dealt" in refused(poker)


def test_hands_that_exchange_cards_are_no_poker() -> None:
    poker = Poker("holdem")
    poker.deal(2)
    card = tuple(poker.hand(1)[:1])
    poker.played.do(Move(Actor(seat=1), "give", "hand:1", "hand:2", card))
    assert "seat 2 took a card from another hand" in refused(poker)

    poker = Poker("holdem")
    poker.deal(2)
    poker.burn()
    poker.played.do(Draw(Actor(seat=1), 1, "pile:burn"))
    assert "seat 1 took a card from a pile" in refused(poker)


def test_a_round_that_does_not_exist_or_is_open_is_unavailable() -> None:
    poker = Poker("holdem")
    poker.deal(2)
    game = poker.close()
    with pytest.raises(HistoryUnavailable, match="1 round and no round 2"):
        phh.write(game, round=2)
    poker.played.open_round(deck=STANDARD)
    poker.deal(2)
    with pytest.raises(HistoryUnavailable, match="Round 2 is not closed"):
        phh.write(game_of(poker.played), round=2)


def test_names_cannot_break_out_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    # A log of an earlier release may hold names that are refused by now.
    for module in (rules, seats):
        monkeypatch.setattr(module, "check_name", lambda name, of="": None)
    poker = Poker("holdem", players=2, name='x"]\nvariant = "PO" # \\ \x7f')
    poker.played.sit('"\\u0041 # \N{BLACK HEART SUIT} \x85')
    poker.deal(2)
    read = PokerKitReading(phh.write(poker.close(), round=1))
    assert read.history.variant == "NT"
    assert read.history.players is not None
    assert read.history.players[2].startswith('"\\u0041 # \N{BLACK HEART SUIT}')
    assert read.history.event is not None
    assert read.history.event.startswith('x"]')


def test_the_host_may_collect_the_cards_after_the_showdown() -> None:
    poker, board = holdem()
    poker.show(1)
    for seat in (1, 2, 3):
        poker.played.do(Move(HOST, "collect", f"hand:{seat}", "pile:muck", count=2))
    poker.played.do(Move(HOST, "pile", "pile:board", "pile:muck", count=5))
    read = read_back(poker)
    assert read.boards == board
    assert read.shown.keys() == {1}
    assert read.mucked == {2, 3}


def test_a_hand_of_a_practice_table_says_that_it_is_no_fair_deal() -> None:
    source = {"table": "ab" * 16, "round": 1, "version": 57, "root": "cd" * 32}
    for poker in (Poker("holdem", players=2), Poker("holdem", players=2, practice=source)):
        poker.deal(2)
        said = "which is no fair deal." in phh.write(poker.close(), round=1)
        assert said == ("practice" in poker.played.table.rules.given)
