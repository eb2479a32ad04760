"""The plain history of a round, of a table, and of an open round."""

from __future__ import annotations

import re

import pytest

from dealer.errors import HistoryUnavailable
from dealer.game.commands import Actor, AddNote, Deal, Move, Pass, TakeBack, VacateSeat
from dealer.history.sentences import named
from dealer.history.text import write
from dealer.history.times import utc
from dealer.languages.language import languages
from tests.history.poker import Poker, game_of
from tests.projector.random_games import HOST


def lines(poker: Poker, **which) -> list[str]:
    return list(write(game_of(poker.played), **which))


def sentences(written: list[str]) -> list[str]:
    found = [re.fullmatch(r"2023-11-14 22:13:\d\d  (.*)", line) for line in written]
    return [match[1] for match in found if match]


@pytest.mark.parametrize("at", [253_402_300_799_000, 2**53 - 1])
def test_a_time_after_the_last_date_is_the_last_date(at) -> None:
    assert f"{utc(at):%Y-%m-%d %H:%M:%S}" == "9999-12-31 23:59:59"


def test_a_round_is_described_to_its_final_stacks() -> None:
    poker = Poker(None, players=2)
    poker.deal(1)
    poker.burn()
    poker.board(1)
    poker.discard(2)
    ada, bob, (burned,), (board,) = (
        poker.hand(1)[0], poker.cards("pile:discard")[0], poker.cards("pile:burn"),
        poker.cards("pile:board"),
    )  # fmt: skip
    poker.played.do(Move(Actor(seat=1), "return", "hand:1", "deck", (ada,), where=3))
    poker.close()
    written = lines(poker, round=1)
    table = poker.played.id.hex()
    assert written[0] == f"Table {table} of the house house"
    assert poker.played.table.key.hex() in written[1]
    assert written[3:5] == ["Round 1, 2023-11-14 22:13:20 UTC", "Seats: 1 Ada, 2 Bob"]
    assert written[5] == "The fresh deck of 52 cards, bottom first:"
    assert written[6].startswith("  As 2s 3s ")
    sentences_ = sentences(written)
    assert "random bytes of the house alone" in sentences_[0]
    assert sentences_[1] == "shuffle 0 begins: the deck, 52 cards, backward, 51 steps"
    assert sentences_[4:] == [
        f"Ada (seat 1) draws {ada} from the deck",
        f"Bob (seat 2) draws {bob} from the deck",
        f"{burned} is burned from the deck",
        f"{board} goes from the deck to the pile board",
        f"{board} in the pile board is turned up for all",
        f"{bob} is discarded from the hand of Bob (seat 2)",
        f"{ada} goes from the hand of Ada (seat 1) to below the top of the deck",
        sentences_[-1],
    ]
    assert sentences_[-1].startswith("round 1 closes; the house's secret was ")
    end = written.index("Stacks at the end of the round, top first:")
    assert written[end + 1] == "the deck:"
    deck = " ".join(written[end + 2 : end + 4]).split()
    assert len(deck) == 49
    assert deck[-4] == ada
    assert written[end + 4 :] == [
        "the burned cards:", f"  {burned}", "the pile board:", f"  {board}",
        "the discard pile:", f"  {bob}",
    ]  # fmt: skip
    assert max(len(line) for line in written[end:]) <= 100


def test_a_card_may_move_to_the_top_of_its_own_pile() -> None:
    poker = Poker(None, players=1)
    poker.burn("pile:x")
    poker.burn("pile:x")
    low, _ = poker.cards("pile:x")
    slot = poker.played.round.cards("pile:x")[0]
    poker.played.do(Move(HOST, "pile", "pile:x", "pile:x", (slot,)))
    poker.close()
    moved = f"{low} goes from below the top of the pile x to the pile x"
    assert moved in sentences(lines(poker))


def test_an_open_round_shows_only_public_cards() -> None:
    poker = Poker(None, players=2)
    poker.deal(2)
    shown, hidden = poker.hand(1)
    poker.show(1, [shown])
    written = lines(poker)
    assert f"{shown} in the hand of Ada (seat 1) is turned up for all" in sentences(written)
    assert sum("draws ?? from the deck" in line for line in written) == 4
    played = written[written.index("Seats: 1 Ada, 2 Bob") + 4 :]
    assert not any(hidden in re.findall(r"\b[A2-9TJQK][shdc]\b", line) for line in played)
    assert written[-1] == "Round 1 is not closed: ?? is a card that is not public."


def test_a_table_has_all_its_rounds_and_the_events_between_them() -> None:
    poker = Poker(None, players=2)
    poker.close()
    poker.played.sit("Cleo")
    poker.played.open_round(deck=("a", "b", "c")).close_round()
    written = lines(poker)
    key = poker.played.table.seats[1].key
    assert key is not None
    assert sentences(written)[1] == f"Ada sits down at seat 1, key {key.hex()}"
    assert [line for line in written if line.startswith("Seats: ")] == [
        "Seats: 1 Ada, 2 Bob", "Seats: 1 Ada, 2 Bob, 3 Cleo",
    ]  # fmt: skip
    assert "  a b c" in written
    only = lines(poker, round=2)
    assert set(only) <= set(written)
    assert not any("Round 1" in line for line in only)
    assert any("not closed" in line for line in written) is False


def test_an_unknown_round_is_reported() -> None:
    poker = Poker(None)
    with pytest.raises(HistoryUnavailable, match="1 round and no round 2"):
        lines(poker, round=2)


def test_control_characters_of_names_are_replaced() -> None:
    poker = Poker(None, players=1)
    poker.played.sit("\u202eRound 9")
    poker.played.do(Move(HOST, "pile", "deck", "pile:x", count=1))
    text = "\n".join(lines(poker))
    assert "\u202e" not in text
    assert text.count("\N{REPLACEMENT CHARACTER}Round 9") == 1


def test_a_history_says_what_was_passed_and_taken_back() -> None:
    poker = Poker(None, players=2, collect="nobody")
    played, ann, bob = poker.played, Actor(seat=1), Actor(seat=2)
    played.do(Deal(HOST, 2))
    (mine, other), (his, _) = poker.hand(1), poker.hand(2)
    played.do(Pass(ann, (mine, other), 2))
    first = played.table.version - 1
    played.do(TakeBack(ann))
    played.do(Pass(ann, (mine,), 2))
    played.do(Pass(bob, (his,), 1))
    played.do(Move(ann, "discard", "hand:1", "pile:discard", (other,)))
    last = played.table.version
    played.do(TakeBack(ann))
    poker.close()
    hers, hiss = "the hand of Ada (seat 1)", "the hand of Bob (seat 2)"
    assert sentences(lines(poker, round=1))[8:-1] == [
        f"{mine} is passed from {hers} to Bob (seat 2)",
        f"{other} is passed from {hers} to Bob (seat 2)",
        f"{other} goes from the cards for Bob (seat 2) to {hers}",
        f"{mine} goes from the cards for Bob (seat 2) to {hers}",
        f"Ada (seat 1) took back versions {first} to {first + 1}",
        f"{mine} is passed from {hers} to Bob (seat 2)",
        f"{his} is passed from {hiss} to Ada (seat 1)",
        f"{his} goes from the cards for Ada (seat 1) to {hers}",
        f"{mine} goes from the cards for Bob (seat 2) to {hiss}",
        f"{other} is discarded from {hers}",
        f"{other} goes from the discard pile to {hers}",
        f"Ada (seat 1) took back version {last}",
    ]


@pytest.mark.parametrize("tag", sorted(languages()))
def test_a_history_is_written_in_every_language(tag: str) -> None:
    """The same lines: each has its time, the cards and the names."""
    poker = Poker(None, players=2)
    poker.deal(1)
    poker.discard(2)
    (card,) = poker.cards("pile:discard")
    poker.close()
    english = lines(poker)
    written = lines(poker, language=languages()[tag])
    assert len(written) == len(english)
    assert (written == english) == (tag == "en")
    assert not any("{" in line or "}" in line for line in written)
    assert sum(card in line for line in written) >= 3
    assert any("Ada" in line for line in written)


@pytest.mark.parametrize("tag", sorted(languages()))
def test_a_player_who_may_sit_down_again_is_named(tag: str) -> None:
    poker = Poker(None, players=2)
    poker.played.do(VacateSeat(HOST, 2, "too loud"))
    poker.played.do(AddNote(HOST, "readmit", "Bob"))
    poker.played.do(AddNote(HOST, "other", "Bob"))
    *_, readmitted, noted = sentences(lines(poker, language=languages()[tag]))
    assert "Bob" in readmitted
    assert "readmit" not in readmitted
    assert "other" in noted
    if tag == "en":
        assert readmitted == "the host lets Bob sit down again"


def test_piles_are_called_what_they_are_for() -> None:
    played = Poker(None, players=2).played
    spoken = {
        "pile:won:2": "the tricks of Bob (seat 2)",
        "pile:seat:1": "the cards before Ada (seat 1)",
        "pile:pass:7": "the cards for seat 7",
        "pile:table": "the table",
        "pile:won": "the pile won",
        "pile:won:02": "the pile won:02",
        "pile:other": "the pile other",
    }
    for stack, words in spoken.items():
        assert named(played.table, stack) == words


@pytest.mark.parametrize("tag", sorted(languages()))
def test_a_practice_table_says_what_was_laid_out_in_every_language(tag: str) -> None:
    source = {"table": "ab" * 16, "round": 3, "version": 57, "root": "cd" * 32}
    language = languages()[tag]
    (opened,) = sentences(lines(Poker(None, practice=source), language=language))[:1]
    ordinary = sentences(lines(Poker(None), language=language))[0]
    for word in ("ab" * 16, "3", "57"):
        assert word in opened
    assert "ab" * 16 not in ordinary
    if tag == "en":
        assert "its first round is no fair deal" in opened
