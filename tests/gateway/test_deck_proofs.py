"""The log of decks: both verifiers accept it, and it has every card that was answered."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from dealer.gateway.decks.parameters import shown
from dealer.proof.verify import verify
from tests.gateway.decks import ORDER, Decks, deck_server, decks
from tests.web.js_verifier import Bundle, compare

__all__ = ["deck_server", "decks"]

pytestmark = pytest.mark.asyncio(loop_scope="session")

PILES = ("mine", "yours", "discard")


async def bundle_of(decks: Decks, answer: dict[str, Any]) -> list[str]:
    """The lines of the bundle that an answer links to, which needs no credential."""
    downloaded = await decks.http.get(answer["proof_bundle"])
    assert downloaded.status_code == 200
    return downloaded.text.splitlines()


async def play(decks: Decks, random: Random) -> None:
    """A few dozen requests in any order, some of them refused."""
    for _ in range(40):
        pile, cards = random.choice(PILES), ",".join(random.sample(ORDER, 6))
        where, count = random.choice(("", "bottom/", "random/")), random.randrange(4)
        path = random.choice(
            [f"draw/{where}?count={count}"] * 5
            + [f"pile/{pile}/add/?cards={cards}"] * 4
            + [f"pile/{pile}/draw/{where}?count={count}", f"pile/{pile}/draw/?cards={cards}"]
            + [f"pile/{pile}/shuffle/", f"pile/{pile}/return/", f"pile/{pile}/list/"]
            + ["return/", f"return/?cards={cards}", "shuffle/", "shuffle/?remaining=true"]
        )
        answer = await decks.http.get(f"/api/deck/{decks.deck}/{path}")
        assert answer.status_code in (200, 404), (path, answer.text)


@pytest.mark.parametrize("seed", range(3))
async def test_both_verifiers_accept_what_any_requests_leave(decks: Decks, seed: int) -> None:
    """While a round is open, and when the deck is closed."""
    random = Random(seed)
    path = ("new/", "new/shuffle/")[seed % 2]
    opened = await decks.open(path, deck_count=1 + seed % 3, jokers_enabled="true")
    await play(decks, random)
    running = Bundle("open", await bundle_of(decks, opened))
    closed = Bundle("closed", await bundle_of(decks, await decks.ask("close/")))
    disagreements, reports = compare([running, closed])
    assert not disagreements
    assert [report.fault for report in reports] == [None, None]


async def test_the_log_says_that_a_deck_was_not_shuffled(decks: Decks) -> None:
    opened = await decks.open()
    await decks.ask("draw/", count=2)
    lines = await bundle_of(decks, opened)
    text = "\n".join(lines)
    assert verify(lines).fault is None
    assert "deck.unshuffled" in text
    assert "This deck was not shuffled" in text
    assert "CardsSwapped" not in text
    page = await decks.http.get(opened["proof"])
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")


async def test_drawn_cards_are_hidden_until_the_swaps_give_them(decks: Decks) -> None:
    opened = await decks.open("new/shuffle/")
    drawn = await decks.codes("draw/", count=5)
    running = await bundle_of(decks, opened)
    assert verify(running).fault is None
    (opening,) = (json.loads(line)["public"] for line in running if '"RoundOpened"' in line)
    draws = [json.loads(line)["public"] for line in running if '"CardDrawn"' in line]
    assert [set(draw) for draw in draws] == [{"from", "round", "seat", "slot"}] * 5
    await decks.ask("shuffle/")
    report = verify(await bundle_of(decks, opened))
    assert report.fault is None
    order = opening["deck"]
    for swap in report.swaps:
        if swap.round == 1:
            order[swap.i], order[swap.j] = order[swap.j], order[swap.i]
    assert [shown(order[draw["slot"]]) for draw in draws] == drawn


@pytest.mark.parametrize("path", ["list/", "draw/?cards=AS", "return/?cards=AS", "add/?cards=AS"])
async def test_a_look_at_a_shuffled_pile_is_in_the_log(decks: Decks, path: str) -> None:
    opened = await decks.open("new/shuffle/", cards="AS,2S,3S,4S")
    drawn = await decks.codes("draw/", count=3)
    await decks.ask("pile/mine/add/", cards=",".join(drawn))
    await decks.ask("pile/mine/shuffle/")
    assert '"CardPeeked"' not in "\n".join(await bundle_of(decks, opened))
    await decks.http.get(f"/api/deck/{decks.deck}/pile/mine/{path}")
    assert "\n".join(await bundle_of(decks, opened)).count('"CardPeeked"') == 3
