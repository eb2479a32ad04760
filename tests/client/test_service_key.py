"""The Python client of a service: its key, and tables under ids of its own."""

from __future__ import annotations

import pytest

from dealer.client import connect
from dealer.errors import BadRequest, SessionEnded, UnknownTable
from dealer.service.identity.service_keys import new_key
from tests.gateway.conftest import gateway, open_gateway, service
from tests.harness.service_keys import add_key, revoke_key

__all__ = ["gateway", "open_gateway", "service"]


async def test_a_service_opens_a_table_once(service, gateway) -> None:
    url = f"ws://127.0.0.1:{gateway.port}/ws"
    key = await add_key(service)
    async with connect(url, key=key) as house:
        table = await house.open(ref="match 1")
    async with connect(url, key=key) as house:
        again = await house.open(ref="match 1")
        assert again.id == table.id
        await again.call("round.open", entropy="house")
    async with connect(url) as house:
        with pytest.raises(BadRequest):
            await house.open(ref="match 1")


async def test_a_service_without_a_host_token(service, gateway) -> None:
    key = await add_key(service)
    async with connect(f"ws://127.0.0.1:{gateway.port}/ws", key=key) as house:
        table = await house.open(host=False)
        assert house._store.table(table.id).record["host_token"] is None
        await table.round_open(entropy="house")
        await table.close()


async def test_a_key_that_is_refused_is_final(service, gateway) -> None:
    url = f"ws://127.0.0.1:{gateway.port}/ws"
    key = await add_key(service)
    for wrong in (new_key(), "dk_"):
        with pytest.raises(SessionEnded) as refused:
            await connect(url, key=wrong)
        assert refused.value.code == 4401
        assert wrong not in repr(refused.value)
    house = await connect(url, key=key)
    await revoke_key(service)
    with pytest.raises(SessionEnded):
        await house.open()
    await house.close()


async def test_a_service_opens_a_practice_table_of_its_private_one(service, gateway) -> None:
    url = f"ws://127.0.0.1:{gateway.port}/ws"
    async with connect(url, key=await add_key(service)) as house:
        table = await house.open(rules={"watch": "nobody"}, host=False)
        await table.round_open(entropy="house")
        await table.shuffle()
        await table.round_close()
        again = await house.open(from_={"table": table.id, "round": 1}, ref="again", host=False)
        assert again.practice is not None
        await again.burn()
        await again.round_close()
    other = await add_key(service, name="other")
    async with connect(url, key=other) as house:
        with pytest.raises(UnknownTable):
            await house.open(from_={"table": table.id, "round": 1})
