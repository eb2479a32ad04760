"""What decks cost an address, who may open them, and decks on several nodes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from http import HTTPStatus
from itertools import count
from typing import Any

import pytest

from dealer.service import Service
from tests.gateway.conftest import TEST_LIMITS, Connect, OpenGateway
from tests.gateway.decks import ORDER, Decks
from tests.gateway.rpc_client import Refusal
from tests.harness.service_keys import add_key


async def test_an_address_opens_a_limited_number_of_decks(open_gateway: OpenGateway) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, tables_per_hour=2))
    async with Decks(gateway) as decks:
        for _ in range(2):
            await decks.open("new/shuffle/")
        refused = await decks.http.get("/api/deck/new/")
        assert refused.status_code == HTTPStatus.TOO_MANY_REQUESTS
        assert int(refused.headers["retry-after"]) > 1
        assert refused.json()["error"].startswith("Your address has opened the maximum number")
        assert (await decks.ask("draw/"))["remaining"] == 51


async def test_all_addresses_together_open_a_limited_number_of_tables(
    open_gateway: OpenGateway, service: Service, connect: Connect, stop_clock: Any
) -> None:
    """Over REST, a WebSocket and POST; a service with a key has limits of its own."""
    limits = replace(TEST_LIMITS, house_tables_per_hour=60)  # six at once
    gateway = await open_gateway(limits=limits, trusted_proxies=("127.0.0.1",))
    clock = stop_clock(gateway)
    numbers = count(1)

    def elsewhere() -> dict[str, str]:
        return {"X-Forwarded-For": f"198.51.100.{next(numbers)}"}

    player = await connect(gateway, additional_headers=elsewhere())
    async with Decks(gateway) as decks:
        call = {"jsonrpc": "2.0", "id": 1, "method": "table.open", "params": {}}

        async def opened() -> Any:
            return await decks.http.get("/api/deck/new/", headers=elsewhere())

        async def posted(**headers: str) -> Any:
            return await decks.http.post("/rpc", json=call, headers=elsewhere() | headers)

        drawn_from = (await opened()).json()["deck_id"]
        await player.call("table.open")
        assert "result" in (await posted()).json()
        three = await decks.http.get("/api/deck/new/shuffle/?deck_count=3", headers=elsewhere())
        assert three.status_code == HTTPStatus.OK
        for refused in (await opened(), await posted()):
            assert refused.status_code == HTTPStatus.TOO_MANY_REQUESTS
            assert refused.headers["retry-after"] == "61"
            assert "All clients together have opened the maximum number" in refused.text
        with pytest.raises(Refusal) as caught:
            await player.call("table.open")
        assert caught.value.error["data"]["retry_after_ms"] == 60_001
        drawn = await decks.http.get(f"/api/deck/{drawn_from}/draw/", headers=elsewhere())
        assert drawn.status_code == HTTPStatus.OK
        key = bearer(await add_key(service, "shop", "open"))
        assert "result" in (await posted(**key)).json()
        assert (await decks.http.get("/api/deck/new/", headers=key)).status_code == HTTPStatus.OK
        clock.now += 61
        await player.call("table.open")
        assert (await opened()).status_code == HTTPStatus.TOO_MANY_REQUESTS


async def test_an_address_pays_for_what_it_writes(open_gateway: OpenGateway) -> None:
    limits = replace(TEST_LIMITS, address_bytes=1.0, address_bytes_burst=600_000.0)
    gateway = await open_gateway(limits=limits)
    async with Decks(gateway) as decks:
        await decks.open("new/shuffle/")
        statuses = [(await decks.http.get(path(decks))).status_code for _ in range(12)]
        assert statuses[0] == HTTPStatus.OK
        assert statuses[-1] == HTTPStatus.TOO_MANY_REQUESTS
        assert (await decks.ask())["remaining"] == 52 - statuses.count(200)


def path(decks: Decks) -> str:
    return f"/api/deck/{decks.deck}/draw/"


async def test_an_address_sends_a_limited_number_of_requests(open_gateway: OpenGateway) -> None:
    limits = replace(TEST_LIMITS, address_rate=0.01, address_burst=5.0)
    async with Decks(await open_gateway(limits=limits)) as decks:
        statuses = [(await decks.http.get("/api/deck/none/")).status_code for _ in range(8)]
        assert statuses[0] == HTTPStatus.NOT_FOUND
        answer = await decks.http.get("/api/deck/none/")
        assert answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
        sentence = "Too many requests from your address; try again later."
        assert answer.json() == {"success": False, "error": sentence}
        assert int(answer.headers["retry-after"]) > 1
        assert answer.headers["access-control-allow-origin"] == "*"


async def test_decks_can_be_switched_off(open_gateway: OpenGateway) -> None:
    async with Decks(await open_gateway(decks=False)) as decks:
        for path in ("/api/deck/new/", "/static/img/AS.svg"):
            answer = await decks.http.get(path)
            assert answer.status_code == HTTPStatus.NOT_FOUND
            assert "access-control-allow-origin" not in answer.headers


async def test_where_only_services_open_tables_they_open_decks(
    open_gateway: OpenGateway, service: Service
) -> None:
    key = await add_key(service, "shop", "open")
    gateway = await open_gateway(open_tables="service")
    async with Decks(gateway) as decks:
        refused = await decks.get("new/", 403)
        assert refused["error"].startswith("On this server only services open decks")
        unknown = await decks.http.get("/api/deck/new/", headers=bearer(f"{key[:-4]}0000"))
        assert unknown.status_code == HTTPStatus.UNAUTHORIZED
        assert unknown.headers["www-authenticate"] == "Bearer"
        assert unknown.json()["error"].startswith("This service key is not valid")
        opened = await decks.http.get("/api/deck/new/", headers=bearer(key))
        decks.deck = opened.json()["deck_id"]
        assert (await decks.ask("draw/"))["remaining"] == 51


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_links_have_the_scheme_that_a_trusted_proxy_names(open_gateway: OpenGateway) -> None:
    said = {"X-Forwarded-Proto": "https"}
    for proxies, scheme in ((("127.0.0.1",), "https"), ((), "http")):
        async with Decks(await open_gateway(trusted_proxies=proxies), **said) as decks:
            assert (await decks.open())["proof"].startswith(f"{scheme}://")


async def test_requests_are_counted_by_operation(open_gateway: OpenGateway) -> None:
    gateway = await open_gateway()
    async with Decks(gateway) as decks:
        await decks.open()
        await decks.ask("draw/")
        await decks.get("none/draw/", 404)
    calls = gateway.metrics.calls
    assert calls["decks.draw", "ok"] == calls["decks.new", "ok"] == 1
    assert calls["decks.draw", "unknown_table"] == 1


async def test_a_deck_is_used_through_several_nodes(open_node: OpenGateway) -> None:
    async with Decks(await open_node()) as here, Decks(await open_node()) as there:
        await here.open()
        there.deck = here.deck
        drawn: list[str] = []
        for number in range(6):
            drawn += await (here if number % 2 else there).codes("draw/", count=2)
        assert drawn == ORDER[:12]
        await here.ask("pile/empty/add/", cards="")
        await there.ask("pile/mine/add/", cards="AS")
        for decks in (here, there):
            listed: Any = (await decks.ask("pile/mine/list/"))["piles"]
            assert listed.keys() == {"empty", "mine"}


async def test_two_nodes_draw_at_the_same_time(open_node: OpenGateway) -> None:
    """The node that comes later answers with the cards that it drew, and with none of the other."""
    async with Decks(await open_node()) as here, Decks(await open_node()) as there:
        await here.open("new/shuffle/")
        there.deck = here.deck
        drawn: list[str] = []
        for _ in range(13):
            for cards in await asyncio.gather(
                here.codes("draw/", count=2), there.codes("draw/", count=2)
            ):
                drawn += cards
        assert sorted(drawn) == sorted(ORDER)
