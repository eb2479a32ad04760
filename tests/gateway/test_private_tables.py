"""A client without a role at a private table learns only that the table exists."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.gateway.schema.documents import examples
from dealer.gateway.session.methods import METHODS
from tests.gateway import rpc_client
from tests.gateway.http_client import get
from tests.gateway.rpc_client import RpcClient
from tests.gateway.tables import SeatedTable, seat_players

_OF_A_REQUEST = ("table", "token", "cmd", "expect")
PARAMS: dict[str, dict[str, Any]] = {
    name: {key: value for key, value in frame["params"].items() if key not in _OF_A_REQUEST}
    for name, (frame, _) in examples().items()
    if frame is not None and name in METHODS and METHODS[name].build is not None
}
"""The parameters of each command, as the recorded game has them."""
PARAMS["seat.ticket"] = {"name": "Dora"}

COMMANDS = [name for name, one in METHODS.items() if one.build is not None]
QUERIES = (
    "seat.ticket",
    "table.watch",
    "table.state",
    "table.presence",
    "table.leave",
    "audit.bundle",
)


async def refusal(client: RpcClient, method: str, **params: Any) -> str:
    refused = await rpc_client.refusal(client.call(method, **params))
    return f"{refused.reason}: {refused}"


async def private_table(connect: Any, gateway: Any) -> SeatedTable:
    return await seat_players(connect, gateway, watch="nobody", join="invite")


@pytest.mark.parametrize("method", [*COMMANDS, *QUERIES])
async def test_every_request_of_an_outsider_has_the_same_refusal(
    gateway, connect, method: str
) -> None:
    table = await private_table(connect, gateway)
    outsider = await connect(gateway)
    request = {"table": table.id, **PARAMS.get(method, {})}
    refusals = {await refusal(outsider, method, **request)}
    await table.host.call("round.open", entropy="house")
    refusals.add(await refusal(outsider, method, **request))
    await table.host.call("deck.shuffle")
    refusals.add(await refusal(outsider, method, **request))
    if method in COMMANDS or method == "table.leave":
        # A search with `expect` does not find the version either.
        for expect in (0, 3, 2**40):
            refusals.add(await refusal(outsider, method, **request, expect=expect))
    await table.host.call("table.close")
    refusals.add(await refusal(outsider, method, **request))
    assert refusals == {"not_entitled: This table is not open to spectators."}


async def test_a_refused_join_does_not_reveal_the_version(gateway, connect) -> None:
    table = await private_table(connect, gateway)
    outsider = await connect(gateway)
    refusals = {
        await refusal(outsider, "table.join", table=table.id, name="x", expect=expect, **more)
        for expect in (0, 1, 2**40)
        for more in ({}, {"invite": "0" * 32})
    }
    assert refusals == {
        "not_entitled: A seat at this table needs its invitation; ask the host for it."
    }


async def test_players_and_host_of_a_private_table_may_act(gateway, connect) -> None:
    table = await private_table(connect, gateway)
    await table.host.call("round.open", entropy="house")
    await table.host.call("deck.shuffle")
    assert len((await table.players[0].call("deck.draw"))["cards"]) == 1
    again = await connect(gateway)
    await again.call("deck.draw", table=table.id, token=table.tokens[1])
    await table.players[0].call("table.leave")
    assert (await table.host.call("table.state"))["state"]["rules"]["watch"] == "nobody"
    assert "not_" in await refusal(table.players[0], "deck.draw", table=table.id)


async def test_downloads_are_refused_to_an_outsider(gateway, connect) -> None:
    table = await private_table(connect, gateway)
    for name in ("bundle.jsonl", "history.txt"):
        got = await get(gateway.port, f"/tables/{table.id}/{name}", connection="close")
        assert got.status in (401, 403)
        assert "version" not in got.text
        assert "player 1" not in got.text


async def test_a_player_that_left_a_private_table_no_longer_gets_its_version(
    gateway, connect
) -> None:
    table = await private_table(connect, gateway)
    token, other = table.tokens[0], await connect(gateway)
    await other.call("audit.bundle", table=table.id, token=token)
    (status,) = (await other.call("session.refresh"))["tables"]
    assert status["seat"] == 1
    await table.players[0].call("table.leave")
    assert (await other.call("session.refresh"))["tables"] == []
