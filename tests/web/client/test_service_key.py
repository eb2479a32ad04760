"""The JavaScript client of a service: its key, and tables under ids of its own."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from dealer.service.identity.service_keys import new_key
from tests.client.test_connection import FakeServer, answer, refuse
from tests.gateway.conftest import gateway, open_gateway, service
from tests.harness.service_keys import add_key, revoke_key
from tests.web.client.conftest import clients
from tests.web.client.node_client import FAST, JsError

__all__ = ["clients", "gateway", "open_gateway", "service"]

pytestmark = pytest.mark.slow

OPEN = "return (await its.house.open({ ref: 'match 1' })).id"


async def test_a_service_opens_a_table_once(service, gateway, clients) -> None:
    url = f"ws://127.0.0.1:{gateway.port}/ws"
    key = await add_key(service)
    opened = []
    for _ in range(2):
        await clients.connect("house", url, key=key)
        opened.append(await clients.run(OPEN))
        await clients.run("await its.house.close()")
    assert opened[0] == opened[1]
    await clients.connect("house", url)
    with pytest.raises(JsError, match="key"):
        await clients.run(OPEN)


async def test_a_service_without_a_host_token(service, gateway, clients) -> None:
    await clients.connect("house", f"ws://127.0.0.1:{gateway.port}/ws", key=await add_key(service))
    host = await clients.run(
        """
        its.table = await its.house.open({ host: false });
        await its.table.roundOpen({ entropy: "house" });
        return its.house.kept(its.table.id).host;
        """
    )
    assert host is False


async def test_a_key_that_is_not_valid_is_final(gateway, clients) -> None:
    for wrong in (new_key(), "dk_", ""):
        with pytest.raises(JsError) as refused:
            await clients.connect("house", f"ws://127.0.0.1:{gateway.port}/ws", key=wrong)
        assert (refused.value.name, refused.value.code) == ("SessionEnded", 4401)
        assert refused.value.message == "The server does not accept this service key."


async def test_a_revoked_key_ends_the_connection(service, gateway, clients) -> None:
    await clients.connect("house", f"ws://127.0.0.1:{gateway.port}/ws", key=await add_key(service))
    ended = clients.begin(
        "return new Promise((end) => its.house.on('connection', ({ error }) => error && "
        "end([error.name, error.code, error.message])))"
    )
    await clients.run("return its.house.tables()")
    await revoke_key(service)
    sentence = "The server no longer accepts this client's key or link."
    assert await ended == ["SessionEnded", 4401, sentence]


class StrictServer(FakeServer):
    """Passes `session.hello` to the script as well."""

    async def serve(self, socket):
        with suppress(ConnectionClosed):
            async for text in socket:
                await self.script(json.loads(text), socket)


async def test_nothing_is_sent_before_the_key_is_accepted(clients) -> None:
    """Also on a new socket, where a temporary refusal delays the acceptance."""
    seen = []

    async def act(frame, socket):
        seen.append(frame["params"].get("key", frame["method"]))
        if len(seen) == 2:
            socket.transport.abort()
        elif len(seen) == 3:
            await refuse(socket, frame, 51, "overloaded")
        else:
            await answer(socket, frame, {"tables": []})

    async with StrictServer() as strict:
        strict.script = act
        await clients.connect("house", strict.url, key="dk_1", retry=FAST)
        assert await clients.run("return its.house.tables()") == []
    assert seen == ["dk_1", "table.list", "dk_1", "dk_1", "table.list"]
