"""Requests of an attacker that knows the source: none breaks the server or reveals more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from msgspec import ValidationError, convert

from dealer.gateway.wire import params as p
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import Refusal, eventually, reason_of
from tests.gateway.tables import seat_and_shuffle, seat_players


@pytest.mark.parametrize(
    "name", ["hand:x", "hand:", "hand:0", "hand:01", "hand:1²", "hand:4294967296"]
)
async def test_a_hand_without_a_valid_number_is_a_bad_request(gateway, connect, name) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    player = table.players[0]
    for params in ({"from_": name, "to": "deck"}, {"from_": "deck", "to": name}):
        assert await reason_of(player.call("pile.move", count=1, **params)) == "bad_request"
    assert await reason_of(player.call("deck.return", count=1, from_=name)) == "bad_request"


def test_a_command_id_has_no_character_that_a_database_cannot_store() -> None:
    assert convert({"cmd": "a\n\u200b\U0010ffff"}, p.Command).cmd == "a\n\u200b\U0010ffff"
    for cmd in ("\x00", "a\x00", "a\n\x00b", ""):
        with pytest.raises(ValidationError):
            convert({"cmd": cmd}, p.Command)


async def test_a_command_id_may_be_used_at_each_table(gateway, connect) -> None:
    tables = [await seat_players(connect, gateway, players=0) for _ in range(2)]
    player = await connect()
    answers = [await player.call("table.join", table=one.id, name="Ada", cmd="1") for one in tables]
    assert [answer["table"] for answer in answers] == [one.id for one in tables]
    again = await player.call("table.join", table=tables[0].id, name="Ada", cmd="1")
    assert again == answers[0]


REQUESTS_AT_A_TABLE: tuple[tuple[str, dict[str, Any]], ...] = (
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


async def test_refusals_at_a_private_table_do_not_depend_on_its_state(gateway, connect) -> None:
    """They reveal neither its version, by `expect`, nor whether there is a round or a shuffle."""
    table = await seat_players(connect, gateway, players=1, watch="nobody", join="invite")
    outsider = await connect()
    refusals = set()
    for step in ("table.state", "round.open", "deck.shuffle"):
        await table.host.call(step)
        for method, params in REQUESTS_AT_A_TABLE:
            for expect in ({}, {"expect": 0}, {"expect": 2**40}):
                with pytest.raises(Refusal) as refused:
                    await outsider.call(method, table=table.id, **params, **expect)
                refusals.add((method == "table.join", refused.value.reason, str(refused.value)))
    assert len(refusals) == 2
    assert {reason for _, reason, _ in refusals} == {"not_entitled"}


async def test_queued_requests_are_bounded_in_bytes(open_gateway, connect) -> None:
    """Requests of 16 KiB after one whose answer has to wait: some are read, then no more."""
    gateway = await open_gateway(limits=replace(TEST_LIMITS, held=10_000))
    table = await seat_players(connect, gateway, players=1)
    player = table.players[0]
    (connection,) = (
        one
        for one in gateway.registry.connections
        if one.receiver
        and (membership := one.receiver.session.memberships.get(table.id))
        and membership.seat.holder
    )
    dispatcher = connection.receiver
    never = asyncio.get_running_loop().create_future()
    connection.drained = lambda: never
    waiting = [player.send("table.state")]
    waiting += [player.send("table.list", id="x" * 16_000 + str(number)) for number in range(200)]
    await eventually(lambda: not connection.transport.is_reading())
    queued = sum(map(len, dispatcher.queue.waiting))
    assert gateway.context.limits.buffer <= queued < 8 * gateway.context.limits.buffer
    never.set_result(True)
    async with asyncio.timeout(20):
        await asyncio.gather(*waiting)
