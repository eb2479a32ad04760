"""Both clients return of an answer only what the verified events say, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dealer.errors import HouseCheated
from tests.client.test_scenes import connect

__all__ = ["connect"]


def other(card: str) -> str:
    return "As" if card != "As" else "Ks"


def with_other_faces(state: dict[str, Any]) -> dict[str, Any]:
    cards = [[slot, other(card), *rest] for slot, card, *rest in state["round"]["cards"]]
    return state | {"round": state["round"] | {"cards": cards}}


FALSE: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("deck.draw", "slots", lambda slots: [slot + 2 for slot in slots]),  # drawn earlier
    ("deck.draw", "slots", lambda slots: slots[:1]),
    ("deck.draw", "slots", lambda slots: slots[::-1]),
    ("deck.draw", "slots", lambda slots: [*slots] * 100),
    ("deck.draw", "slots", lambda slots: None),
    ("deck.draw", "cards", lambda cards: [other(card) for card in cards]),
    ("deck.draw", "cards", lambda cards: cards[:1]),
    ("deck.draw", "version", lambda version: version - 1),
    ("deck.draw", "version", lambda version: 1),
    ("deck.draw", "version", str),
    ("pile.draw", "slots", lambda slots: slots[1:]),
    ("pile.draw", "version", lambda version: version - 1),
    ("round.open", "round", lambda number: number + 1),
    ("round.open", "commitment", lambda commitment: commitment[::-1]),
    ("deck.shuffle", "k", lambda k: k + 1),
    ("deck.deal", "dealt", lambda dealt: dealt - 1),
    ("deck.deal", "dealt", lambda dealt: dealt + 1),
    ("deck.cut", "version", lambda version: version - 2),
    ("table.state", "state", lambda state: state | {"version": state["version"] - 1}),
    ("table.state", "state", with_other_faces),
    ("audit.bundle", "version", lambda version: 1),
    ("audit.bundle", "url", lambda url: f"https://elsewhere.example{url}"),
    ("round.close", "secret", lambda secret: secret[::-1]),
    ("table.join", "seat", lambda seat: seat + 1),
    ("table.join", "seat", lambda seat: 1),
]
"""A method, a member of its answer, and what a proxy makes of it."""


def falsify(proxy: Any, method: str, member: str, change: Callable[[Any], Any]) -> None:
    """Have the proxy change this member of the answers."""
    asked: set[int] = set()

    def ask(frame: Any) -> Any:
        if frame.get("method") == method:
            asked.add(frame["id"])
        return frame

    def answer(frame: Any) -> Any:
        if frame.get("id") in asked and "result" in frame:
            frame["result"][member] = change(frame["result"][member])
        return frame

    proxy.alter_request, proxy.alter = ask, answer


async def play(table: Any) -> None:
    """What each method returns, compared with what the table shows."""
    assert await table.round_open(entropy="house") == 1
    assert await table.shuffle() == 0
    first = await table.draw(2)
    assert await table.draw(2) == table.hand[2:]
    assert await table.draw(1, end="random") == table.hand[4:]
    await table.cut(20)
    await table.play(first, pile="meld", face="down")
    assert await table.pile_draw("meld", whole=True) == first
    piles = [{"name": "board", "count": 2, "face": "up"}]
    assert await table.deal(2, piles=piles) == 2 * len(table.seats) + 2
    assert await table.pile_draw("pile:board", cards=[table.stack("pile:board")[0]])
    await table.state_at(table.version)
    assert await table.bundle() == {
        "url": f"/tables/{table.id}/bundle.jsonl",
        "version": table.version,
    }
    await table.round_close()


async def test_what_an_honest_answer_says_is_returned(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open(rules={"preset": "shared"}))
        await his.join(ada.id)
        await play(ada)
        assert ada.doubts == []


@pytest.mark.parametrize(("method", "member", "change"), FALSE)
async def test_another_answer_than_the_events_say(connect, proxy, method, member, change):
    falsify(proxy, method, member, change)
    async with connect(name="Ada") as hers, connect(proxy.url, name="Bob") as his:
        table = await hers.join(await hers.open(rules={"preset": "shared"}))
        with pytest.raises(HouseCheated, match=f"answer to {method} is not what the table's"):
            await play(await his.join(table.id))
        with pytest.raises(HouseCheated):
            await his.join(table.id)
