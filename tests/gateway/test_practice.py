"""Practice tables: a closed round laid out again, from any of its versions."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from dealer.proof.verify import Report, verify
from dealer.service.reading.past_states import no_pause
from tests.gateway.http_client import get
from tests.gateway.tables import SeatedTable, seat_and_shuffle

RANKS = "23456789TJQKA"


async def play_tricks(table: SeatedTable, hands: dict[int, list[str]], tricks: int) -> list[int]:
    """Each seat in turn plays its lowest card of the suit led, or of any; the winner collects.

    The versions before each trick.
    """
    versions: list[int] = []
    players = {
        joined["seat"]: client for joined, client in zip(table.joined, table.players, strict=True)
    }
    turn = 1
    for _ in range(tricks):
        versions.append((await table.host.call("table.state"))["version"])
        led, played = "", {}
        for offset in range(4):
            seat = (turn - 1 + offset) % 4 + 1
            card = chosen(hands[seat], led)
            led = led or card[1]
            await players[seat].call("hand.play", cards=[card], pile="trick")
            hands[seat].remove(card)
            played[seat] = card
        turn = max(played, key=lambda seat: (played[seat][1] == led, RANKS.index(played[seat][0])))
        await players[turn].call("pile.move", pile="trick", to=f"pile:won-{turn}", all=True)
    return versions


def chosen(hand: list[str], led: str) -> str:
    return min([card for card in hand if card[1] == led] or hand, key=lambda c: RANKS.index(c[0]))


async def hands_of(table: SeatedTable) -> dict[int, list[str]]:
    hands = {}
    for joined, client in zip(table.joined, table.players, strict=True):
        state = (await client.call("table.state"))["state"]
        codes = {slot: code for slot, code, _ in state["round"]["cards"]}
        hands[joined["seat"]] = [
            codes[s] for s in state["round"]["stacks"][f"hand:{joined['seat']}"]
        ]
    return hands


async def hearts(connect: Any, gateway: Any, **rules: Any) -> tuple[SeatedTable, list[int]]:
    """A closed round of 13 tricks, and the versions before each of them."""
    table = await seat_and_shuffle(connect, gateway, players=4, game="hearts", seats=4, **rules)
    await table.host.call("deck.deal", each=13)
    versions = await play_tricks(table, await hands_of(table), 13)
    await table.host.call("round.close")
    return table, versions


async def faces_at(gateway: Any, table: str, version: int) -> dict[str, tuple[str, ...]]:
    """Every card of a table, as the log's own state has them."""
    service = gateway.context.service
    live_table = await service.lifecycle.load(table)
    number = sum(opened <= version for opened in live_table.table.round_versions)
    _, round_ = await service.past_states.practice(live_table, number, version, pause=no_pause)
    return {
        name: tuple(round_.face(card) for card in cards)
        for name, cards in round_.stacks.items()
        if cards
    }


async def bundle_of(gateway: Any, table: str) -> list[str]:
    answer = await get(gateway.port, f"/tables/{table}/bundle.jsonl", connection="close")
    assert answer.status == 200
    return answer.text.splitlines()


async def open_from(
    connect: Any, gateway: Any, players: int, **source: Any
) -> tuple[SeatedTable, dict[str, Any]]:
    """A practice table, whose seats are taken by so many clients."""
    host = await connect(gateway)
    opened = await host.call("table.open", **{"from": source})
    clients, joined = [], []
    for number in range(1, players + 1):
        client = await connect(gateway)
        joined.append(
            await client.call("table.join", table=opened["table"], name=f"p{number}", seat=number)
        )
        clients.append(client)
    return SeatedTable(opened["table"], host, opened["host_token"], clients, joined), opened


async def test_all_that_is_laid_out_has_the_time_of_one_command(
    gateway: Any, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages leave these events out of the list of what happened."""
    source, versions = await hearts(connect, gateway)
    times = count(2_000_000_000_000)
    monkeypatch.setattr(gateway.context.service.executor, "now", lambda: next(times))
    host = await connect(gateway)
    moment = {"table": source.id, "round": 1, "version": versions[4]}
    opened = await host.call("table.open", **{"from": moment})
    bundle = (await get(gateway.port, f"/tables/{opened['table']}/bundle.jsonl")).body
    leaves = [json.loads(line) for line in bundle.splitlines() if b'"at":' in line]
    laid_out = [leaf for leaf in leaves if leaf["version"] <= opened["version"]]
    assert laid_out[-1]["type"] == "SeatLeft"
    assert {leaf["at"] for leaf in laid_out} == {2_000_000_000_000}


async def test_hearts_from_trick_five_with_other_cards(gateway, connect) -> None:
    source, versions = await hearts(connect, gateway)
    before = versions[4]
    table, opened = await open_from(connect, gateway, 4, table=source.id, round=1, version=before)
    state = (await table.host.call("table.state"))["state"]
    rule = state["rules"]["practice"]
    assert (rule["table"], rule["round"], rule["version"]) == (source.id, 1, before)
    assert state["rules"]["game"] == "hearts"
    assert "name" not in state["rules"]
    hands = await hands_of(table)
    assert [len(hand) for hand in hands.values()] == [9] * 4
    wanted = await faces_at(gateway, source.id, before)
    assert {f"hand:{seat}": tuple(hand) for seat, hand in hands.items()} == {
        name: cards for name, cards in wanted.items() if name.startswith("hand:")
    }
    past = (await source.host.call("table.state", at=before))["state"]
    stacks = {name: len(slots) for name, slots in state["round"]["stacks"].items() if slots}
    assert stacks == {name: len(slots) for name, slots in past["round"]["stacks"].items() if slots}
    # The tricks lie face up, in the same order, for everyone.
    shown = {code for _, code, _ in state["round"]["cards"]}
    assert shown == {code for _, code, _ in past["round"]["cards"]}
    for hand in hands.values():  # the others way round: the highest card of each
        hand.sort(key=lambda card: RANKS.index(card[0]), reverse=True)
    await play_tricks(table, hands, 9)
    await table.host.call("round.close")
    # A second round is an ordinary one, from the tape.
    await table.host.call("round.open", entropy="house")
    await table.host.call("deck.shuffle")
    await table.host.call("round.close")
    lines, origin = await bundle_of(gateway, table.id), await bundle_of(gateway, source.id)
    report = verify(lines, source=origin)
    assert report.fault is None, report.fault
    assert report.practice is not None
    assert report.practice.source == "proved"
    assert report.remarks.not_top == 0
    assert any(line.startswith("practice: not a fair deal.") for line in report.lines())
    assert practice_state(verify(lines)) == "not given"
    assert opened["version"] < report.swaps[-1].version


def practice_state(report: Report) -> str | None:
    assert report.fault is None, report.fault
    return None if report.practice is None else report.practice.source


async def test_the_same_shuffle_again(gateway, connect) -> None:
    source, _ = await hearts(connect, gateway)
    table, opened = await open_from(connect, gateway, 4, table=source.id, round=1)
    state = (await table.host.call("table.state"))["state"]
    assert {name: len(cards) for name, cards in state["round"]["stacks"].items()} == {"deck": 52}
    assert state["seats"] != []
    assert opened["version"] == 1 + 3 + 51 + 1
    await table.host.call("deck.deal", each=13)
    hands = await hands_of(table)
    dealt = json.loads((await bundle_of(gateway, source.id))[state["rules"]["practice"]["version"]])
    assert dealt["type"] == "DeckSealed"
    first = await faces_at(gateway, source.id, dealt["version"] + 52)
    assert {f"hand:{seat}": tuple(hand) for seat, hand in hands.items()} == {
        name: cards for name, cards in first.items() if cards
    }


async def test_every_version_of_a_round_with_piles_and_a_second_shuffle(gateway, connect) -> None:
    """Versions before the shuffle, within it, and after it; also a practice table as source."""
    source = await seat_and_shuffle(connect, gateway, players=2)
    ann, bob = source.players
    host = source.host
    await host.call("deck.deal", each=3, piles=[{"name": "open", "count": 2, "face": "up"}])
    drawn = await ann.call("deck.draw", count=2)
    await ann.call("hand.discard", cards=drawn["slots"])
    await bob.call("hand.show", cards=None, all=True)
    await host.call("deck.shuffle", steps=10)
    await bob.call("table.leave")
    await host.call("round.close")
    lines = await bundle_of(gateway, source.id)
    types = [json.loads(line).get("type") for line in lines]
    first, last = types.index("RoundOpened"), types.index("RoundClosed")
    for version in [*range(first, first + 4), *range(first + 50, last, 7), last - 1]:
        table, _ = await open_from(connect, gateway, 0, table=source.id, round=1, version=version)
        await table.host.call("round.close")
        mine = await bundle_of(gateway, table.id)
        assert practice_state(verify(mine, source=lines)) == "proved", version
    again, _ = await open_from(connect, gateway, 0, table=table.id, round=1)
    await again.host.call("round.close")
    report = verify(await bundle_of(gateway, again.id), source=mine)
    assert practice_state(report) == "proved"


async def test_an_open_round_is_not_compared_yet(gateway, connect) -> None:
    source, versions = await hearts(connect, gateway)
    table, _ = await open_from(connect, gateway, 0, table=source.id, round=1, version=versions[2])
    report = verify(await bundle_of(gateway, table.id), source=await bundle_of(gateway, source.id))
    assert practice_state(report) == "open"


async def test_a_repeated_command_opens_one_table(gateway, connect) -> None:
    source, _ = await hearts(connect, gateway)
    asking = {"from": {"table": source.id, "round": 1}, "cmd": "c" * 32, "name": "Again"}
    opened = [await (await connect(gateway)).call("table.open", **asking) for _ in range(2)]
    assert opened[0] == opened[1]
