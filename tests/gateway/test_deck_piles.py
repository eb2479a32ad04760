"""Piles of decks over simple REST, before and after shuffles that hide their cards."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from dealer.gateway import Gateway
from tests.gateway.decks import ORDER, Decks, codes, deck_server, decks, without_proof

__all__ = ["deck_server", "decks"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", params=["new/", "new/shuffle/"])
async def pile(decks: Decks, request: pytest.FixtureRequest) -> list[str]:
    """The codes of a pile of six cards, from its bottom, of eight that are drawn."""
    await decks.open(request.param)
    drawn = await decks.codes("draw/", count=8)
    await decks.ask("pile/mine/add/", cards=",".join(drawn[:6]))
    return drawn[:6]


async def test_adding_cards_to_piles(decks: Decks) -> None:
    await decks.open()
    await decks.ask("draw/", count=4)
    added = await decks.ask("pile/mine/add/", cards="as,3S")
    assert without_proof(added) == {
        "success": True,
        "deck_id": decks.deck,
        "remaining": 48,
        "piles": {"mine": {"remaining": 2}},
    }
    moved = await decks.ask("pile/other/add/", cards="2S,AS")
    assert moved["piles"] == {"mine": {"remaining": 1}, "other": {"remaining": 2}}
    assert await decks.listed("other") == ["2S", "AS"]
    await decks.ask("pile/other/add/", cards="2S")
    assert await decks.listed("other") == ["AS", "2S"]
    listed = await decks.ask("pile/mine/list/")
    assert codes(listed["piles"]["mine"]) == ["3S"]
    assert listed["piles"]["other"] == {"remaining": 2}


async def test_an_empty_pile_is_kept(decks: Decks) -> None:
    """A client opens a pile by adding nothing to it, and lists it."""
    await decks.open()
    empty = await decks.ask("pile/mine/add/", cards="")
    assert empty["piles"] == {"mine": {"remaining": 0}}
    assert await decks.listed("mine") == []
    assert "other" not in (await decks.ask("pile/other/list/"))["piles"]
    assert (await decks.ask("pile/mine/shuffle/"))["success"] is True
    await decks.ask("draw/")
    assert (await decks.ask("pile/mine/add/", cards="AS"))["piles"] == {"mine": {"remaining": 1}}


async def test_what_this_process_knows_of_a_deck_is_read_from_the_log(
    decks: Decks, deck_server: Gateway
) -> None:
    await decks.open()
    await decks.ask("draw/", count=2)
    await decks.ask("pile/mine/add/", cards="AS")
    await decks.ask("pile/empty/add/", cards="")
    before = await decks.ask("pile/mine/list/")
    endpoint: Any = deck_server._decks
    endpoint._notes.clear()
    assert await decks.ask("pile/mine/list/") == before
    assert list(before["piles"]) == ["mine", "empty"]
    endpoint._notes.clear()
    assert (await decks.ask())["shuffled"] is False


async def test_drawing_from_the_ends_of_a_pile(decks: Decks, pile: list[str]) -> None:
    drawn = await decks.ask("pile/mine/draw/", count=2)
    assert list(without_proof(drawn)) == ["success", "deck_id", "remaining", "cards", "piles"]
    assert codes(drawn) == pile[4:]
    assert drawn["piles"] == {"mine": {"remaining": 4}}
    assert await decks.codes("pile/mine/draw/bottom/", count=2) == pile[:2]
    assert await decks.codes("pile/mine/draw/") == [pile[3]]
    assert await decks.listed("mine") == [pile[2]]


async def test_drawing_named_cards(decks: Decks, pile: list[str]) -> None:
    named = [pile[3], pile[0]]
    assert await decks.codes("pile/mine/draw/", cards=",".join(named)) == named
    assert await decks.listed("mine") == [pile[1], pile[2], pile[4], pile[5]]


async def test_a_shuffled_pile_is_listed_and_drawn_from(decks: Decks, pile: list[str]) -> None:
    """Its cards are hidden from the interface's seat until it looks at them."""
    shuffled = await decks.ask("pile/mine/shuffle/")
    assert shuffled["piles"] == {"mine": {"remaining": 6}}
    assert await decks.codes("pile/mine/draw/", cards=pile[0]) == [pile[0]]
    await decks.ask("pile/mine/shuffle/")
    left = await decks.listed("mine")
    assert sorted(left) == sorted(pile[1:])
    assert await decks.codes("pile/mine/draw/") == [left[-1]]
    await decks.ask("pile/mine/shuffle/")
    assert await decks.codes("pile/mine/draw/bottom/", count=4) != []
    assert (await decks.ask("draw/", count=44))["remaining"] == 0


async def test_drawing_at_random(decks: Decks, pile: list[str]) -> None:
    drawn = await decks.codes("pile/mine/draw/random/", count=2)
    left = await decks.listed("mine")
    assert sorted(drawn + left) == sorted(pile)
    await decks.ask("pile/mine/draw/random/", count=4)
    assert await decks.listed("mine") == []


async def test_a_pile_returns_below_the_deck(decks: Decks, pile: list[str]) -> None:
    some = await decks.ask("pile/mine/return/", cards=f"{pile[4]},{pile[1]}")
    assert list(without_proof(some)) == ["success", "deck_id", "remaining", "piles"]
    assert (some["remaining"], some["piles"]) == (46, {"mine": {"remaining": 4}})
    assert (await decks.ask("pile/mine/return/"))["remaining"] == 50
    below = [pile[4], pile[1], pile[0], pile[2], pile[3], pile[5]]
    assert (await decks.codes("draw/", count=50))[-6:] == below


async def test_a_shuffled_pile_returns_by_name(decks: Decks, pile: list[str]) -> None:
    await decks.ask("pile/mine/shuffle/")
    assert (await decks.ask("pile/mine/return/", cards=pile[2]))["remaining"] == 45
    assert (await decks.ask("pile/mine/return/"))["remaining"] == 50
    await decks.ask("return/")
    assert sorted(await decks.codes("draw/bottom/", count=52)) == sorted(ORDER)


WRONG = [
    ("pile/none/draw/", {}, 404, "The pile, none does not exist."),
    ("pile/none/shuffle/", {}, 404, "The pile, none does not exist."),
    ("pile/none/return/", {}, 404, "The pile, none does not exist."),
    ("pile/none/add/", {}, 404, "You must specify cards to add to the pile."),
    ("pile/mine/draw/", {"count": 7}, 404, "Not enough cards remaining to draw 7 additional"),
    ("pile/mine/draw/random/", {"count": 7}, 404, "Not enough cards remaining to draw 7"),
    ("pile/mine/draw/", {"count": "x"}, 400, "count is a whole number"),
    ("pile/mine/draw/", {"cards": "AS,zz"}, 400, '"zz" is no card'),
    ("pile/mine/draw/", {"cards": "AS,AS"}, 404, "The pile, mine does not contain the requested"),
    ("pile/mine/return/", {"cards": "X1"}, 404, "The pile, mine does not contain the requested"),
    (
        "pile/mine/add/",
        {"cards": "AS,KH"},
        404,
        "Only drawn cards and cards of piles go onto a pile",
    ),
    ("pile/mine/add/", {"card": "AS"}, 400, '"card" is no parameter here: did you mean cards?'),
    ("pile/mine/draw/", {"cards": "X2"}, 404, "The pile, mine does not contain the requested"),
    (f"pile/{'a' * 33}/add/", {"cards": "AS"}, 400, "A pile's name is 1 to 32"),
    ("pile/Müller/add/", {"cards": "AS"}, 400, "A pile's name is 1 to 32 of the letters a to z"),
    ("pile/山田/list/", {}, 400, "A pile's name is 1 to 32"),
    ("pile/my hand/draw/", {}, 400, "A pile's name is 1 to 32"),
    ("pile/a.b/draw/bottom/", {}, 400, "A pile's name is 1 to 32"),
    ("pile/a%2Fb/shuffle/", {}, 400, "A pile's name is 1 to 32"),
    ("pile/(drawn)/return/", {}, 400, "A pile's name is 1 to 32"),
    ("pile/pass:1/list/", {}, 400, "A pile's name is 1 to 32"),
]


@pytest.mark.parametrize(("path", "parameters", "status", "error"), WRONG)
async def test_requests_that_are_wrong(
    decks: Decks, path: str, parameters: dict[str, Any], status: int, error: str
) -> None:
    await decks.open("new/shuffle/", cards="AS,2S,3S,4S")
    drawn = await decks.codes("draw/", count=3)
    await decks.ask("pile/mine/add/", cards=",".join(drawn))
    answer = await decks.ask(path, status, **parameters)
    assert answer["success"] is False
    assert answer["error"].startswith(error)
    assert status == 400 or answer["proof"].endswith("/audit")
    assert await decks.listed("mine") == drawn
