"""Requests of an attacker who has read the source: nothing breaks, and nothing more is learnt."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from msgspec import ValidationError, convert

from dealer.gateway import params as p
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Refusal, eventually
from tests.gateway.tables import seat_all, shuffled


@pytest.mark.parametrize(
    "name", ["hand:x", "hand:", "hand:0", "hand:01", "hand:1²", "hand:4294967296"]
)
async def test_a_hand_with_no_number_is_a_bad_request(gateway, arrive, name) -> None:
    table = await shuffled(arrive, gateway, players=1)
    player = table.players[0]
    for params in ({"from_": name, "to": "deck"}, {"from_": "deck", "to": name}):
        with pytest.raises(Refusal) as refused:
            await player.ask("pile.move", count=1, **params)
        assert refused.value.reason == "bad_request"
    with pytest.raises(Refusal) as refused:
        await player.ask("deck.return", count=1, from_=name)
    assert refused.value.reason == "bad_request"


def test_a_command_id_holds_no_character_that_a_database_cannot_store() -> None:
    assert convert({"cmd": "a\n\u200b\U0010ffff"}, p.Command).cmd == "a\n\u200b\U0010ffff"
    for cmd in ("\x00", "a\x00", "a\n\x00b", ""):
        with pytest.raises(ValidationError):
            convert({"cmd": cmd}, p.Command)


async def test_command_ids_that_count_from_one_at_each_table(gateway, arrive) -> None:
    tables = [await seat_all(arrive, gateway, players=0) for _ in range(2)]
    player = await arrive()
    answers = [await player.ask("table.join", table=one.id, name="Ada", cmd="1") for one in tables]
    assert [answer["table"] for answer in answers] == [one.id for one in tables]
    again = await player.ask("table.join", table=tables[0].id, name="Ada", cmd="1")
    assert again == answers[0]


OF_A_TABLE = (
    ("deck.draw", {}),
    ("deck.shuffle", {}),
    ("deck.deal", {}),
    ("deck.burn", {}),
    ("round.open", {}),
    ("round.close", {}),
    ("table.close", {}),
    ("table.leave", {}),
    ("pile.move", {"from_": "deck", "to": "pile:x"}),
    ("pile.turn", {"pile": "x"}),
    ("hand.play", {"cards": [0]}),
    ("entropy.commit", {"round": 1, "k": 0, "digest": "0" * 64}),
    ("entropy.reveal", {"round": 1, "k": 0, "nonce": "0" * 64}),
    ("table.join", {"name": "Eve"}),
)


async def test_a_stranger_learns_nothing_of_how_a_private_table_stands(gateway, arrive) -> None:
    """Neither its version, by `expect`, nor whether a round or a shuffle is under way."""
    table = await seat_all(arrive, gateway, players=1, watch="nobody", join="invite")
    stranger = await arrive()
    seen = set()
    for step in ("table.state", "round.open", "deck.shuffle"):
        await table.host.ask(step)
        for method, params in OF_A_TABLE:
            for expect in ({}, {"expect": 0}, {"expect": 2**40}):
                with pytest.raises(Refusal) as refused:
                    await stranger.ask(method, table=table.id, **params, **expect)
                seen.add((method == "table.join", refused.value.reason, str(refused.value)))
    assert len(seen) == 2
    assert {reason for _, reason, _ in seen} == {"not_entitled"}


async def test_what_is_held_back_is_bounded_in_bytes(open_gateway, arrive) -> None:
    """Requests of 16 KiB behind one whose answer has to wait: some are taken, then none."""
    gateway = await open_gateway(limits=replace(EAGER, held=10_000))
    table = await seat_all(arrive, gateway, players=1)
    player = table.players[0]
    (connection,) = (
        one
        for one in gateway.door.connections
        if one.session and (place := one.session.places.get(table.id)) and place.seat
    )
    session = connection.session
    never = asyncio.get_running_loop().create_future()
    connection.writable = lambda: never  # type: ignore[method-assign]
    waiting = [player.send("table.state")]
    waiting += [player.send("table.list", id="x" * 16_000 + str(number)) for number in range(200)]
    await eventually(lambda: connection._holding)
    held = sum(map(len, session._held))
    assert gateway.floor.limits.buffer <= held < 8 * gateway.floor.limits.buffer
    never.set_result(True)
    async with asyncio.timeout(20):
        await asyncio.gather(*waiting)
