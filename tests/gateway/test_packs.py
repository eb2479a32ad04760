"""Packs and games, as they are served to pages and to programs of other origins."""

from __future__ import annotations

import json
from typing import Any

from dealer.packs.catalogue import Catalogue, shipped
from tests.gateway.http_client import get
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


async def test_a_table_opens_with_every_games_deck_and_rules(open_gateway, connect) -> None:
    gateway = await open_gateway()
    for name, game in shipped().games.items():
        rules = game["rules"] | {"game": name}
        if "pack" in game:
            rules["pack"] = game["pack"]
        table = await seat_players(
            connect, gateway, players=1, deck=game["deck"], entropy="house", **rules
        )
        await table.host.call("round.open", entropy="house")
        state = (await table.host.call("table.state"))["state"]
        assert state["rules"]["game"] == name
        assert len(state["round"]["deck"]) == game["cards"]
