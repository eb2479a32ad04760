"""Packs and games, as they are served to pages and to programs of other origins."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dealer.gateway.session.commands import deck_codes
from dealer.packs.catalogue import Catalogue, shipped
from tests.gateway.http_client import get
from tests.gateway.rpc_client import Refusal
from tests.gateway.tables import seat_players

PACK: dict[str, Any] = {"pack": "mine", "title": "红", "deck": ["1", "2"], "cards": {}}


async def test_the_lists_name_every_pack_and_game(open_gateway) -> None:
    gateway = await open_gateway()
    packs = json.loads((await get(gateway.port, "/packs.json")).body)
    assert [one["pack"] for one in packs] == list(shipped().packs)
    assert {"pack": "spanish-40", "title": packs[2]["title"], "cards": 40} in packs
    games = json.loads((await get(gateway.port, "/games.json")).body)
    assert [one["game"] for one in games] == list(shipped().games)
    assert {"title", "players", "cards", "deck", "rules"} <= set(games[0])
    assert "help" not in games[0]


async def test_a_pack_is_served_as_json_and_revalidated(open_gateway) -> None:
    gateway = await open_gateway()
    got = await get(gateway.port, "/packs/tarot.json")
    assert json.loads(got.body) == shipped().packs["tarot"]
    assert got.headers["content-type"] == "application/json"
    assert got.headers["access-control-allow-origin"] == "*"
    again = await get(gateway.port, "/packs/tarot.json", If_None_Match=got.headers["etag"])
    assert again.status == 304
    got = await get(gateway.port, "/games/hearts.json")
    assert json.loads(got.body) == shipped().games["hearts"]
    assert (await get(gateway.port, "/packs/none.json")).status == 404


async def test_an_operators_packs_are_served(open_gateway) -> None:
    gateway = await open_gateway(catalogue=Catalogue({"mine": PACK}, {}))
    assert json.loads((await get(gateway.port, "/packs/mine.json")).body) == PACK
    assert (await get(gateway.port, "/packs/tarot.json")).status == 404
    assert json.loads((await get(gateway.port, "/games.json")).body) == []


async def test_a_table_of_a_game_or_a_pack_has_its_deck(open_gateway, connect) -> None:
    gateway = await open_gateway()
    for name, game in shipped().games.items():
        rules = game["rules"] | {"game": name}
        table = await seat_players(connect, gateway, players=1, entropy="house", **rules)
        await table.host.call("round.open", entropy="house")
        state = (await table.host.call("table.state"))["state"]
        assert state["rules"]["game"] == name
        assert state["rules"].get("pack") == game.get("pack")
        assert sorted(state["round"]["deck"]) == sorted(deck_codes(game["deck"]))
    host = await connect(gateway)
    for deck, rules, dealt in (
        (None, {"pack": "tarot"}, shipped().packs["tarot"]["deck"]),
        (None, {"pack": "standard"}, None),
        (["1", "2"], {"game": "hearts"}, ["1", "2"]),
        (None, {"game": "colours-and-numbers", "deck": "54"}, "54"),
        (None, {"game": "hearts", "pack": "tarot"}, shipped().games["hearts"]["deck"]),
    ):
        opened = await host.call(
            "table.open", rules=rules, **({} if deck is None else {"deck": deck})
        )
        got = (await host.call("table.state", table=opened["table"]))["state"]["rules"]
        assert got.get("deck") == dealt


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"game": "heart"}, "Did you mean hearts?"),
        ({"game": "nosuch"}, "/games.json"),
        ({"game": ""}, "/games.json"),
        ({"game": "x" * 5000}, "no game 'xxx"),
        ({"pack": "tarok"}, "Did you mean tarot?"),
        ({"game": "hearts", "pack": "nosuch"}, "/packs.json"),
    ],
)
async def test_an_unknown_game_or_pack_is_refused(
    open_gateway, connect, rules: dict[str, Any], sentence: str
) -> None:
    host = await connect(await open_gateway())
    for deck in ({}, {"deck": "52"}):
        with pytest.raises(Refusal) as refused:
            await host.call("table.open", rules=rules, **deck)
        assert sentence in str(refused.value)
        assert len(str(refused.value)) < 400


async def test_a_repetition_at_a_node_with_other_folders_has_the_first_answer(
    open_gateway, connect, service
) -> None:
    one = await open_gateway(catalogue=Catalogue({"mine": PACK}, {}))
    two = await open_gateway()
    opening = {"rules": {"pack": "mine"}, "cmd": "0123456789abcdef0123456789abcdef"}
    first = await (await connect(one)).call("table.open", **opening)
    other = await connect(two)
    assert await other.call("table.open", **opening) == first
    state = (await other.call("table.state", table=first["table"], token=first["host_token"]))[
        "state"
    ]
    assert state["rules"]["deck"] == PACK["deck"]
    with pytest.raises(Refusal, match="no pack 'mine'"):
        await other.call("table.open", **opening | {"cmd": "f" * 32})
