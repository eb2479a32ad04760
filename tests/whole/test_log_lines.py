"""The house's own log of a whole game, at its most talkative: nothing in it tells of the game."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from tests.gateway.asking import get
from tests.gateway.guest import Guest, Refusal
from tests.whole.house import HouseProcess
from tests.whole.party import Party, party, play_everything, play_to_the_end

NAMES = ("Ada-the-first", "Bob-the-second", "Cleo-the-third", "Dan-the-fourth")
DECK = [f"<<{rank}{suit}>>" for rank in "A23456789TJQK" for suit in "shdc"]


def secrets_of(guests: Party, folder: Path) -> set[str]:
    """Every token, invitation, nonce and key that a client keeps, and the faces and names."""
    found = {*NAMES, "onlooker", "From socket to audit", *DECK}
    for file in folder.rglob("*"):
        if file.is_file():
            text = file.read_text(errors="replace")
            found |= set(re.findall(r"(?:host|seat)\.[0-9a-f.]+", text))
            found |= set(re.findall(r"\b[0-9a-f]{32,}\b", text))
    return {one for one in found if guests.id not in one}


async def misbehave(house: HouseProcess, table: str, token: str) -> None:
    """What a log might be tempted to quote."""
    guest = await Guest.arrive(house.port)
    for method, params in (
        ("table.resume", {"table": table, "token": token[:-1] + "x", "after": 0}),
        ("table.join", {"table": token, "name": NAMES[0]}),
        ("table.state", {"table": table, "token": f"{NAMES[2]} {DECK[3]}"}),
    ):
        try:
            await guest.ask(method, **params)
        except Refusal:
            continue
        raise AssertionError(method)
    await guest.say(f'{{"token":"{token}","name":"{NAMES[3]}"')
    await guest.say(token.encode())
    await guest.gone()
    refused = await get(house.port, f"/ws?token={token}", Origin=f"http://{NAMES[0]}")
    assert refused.status in (400, 403, 426)
    await get(house.port, f"/{token}", Authorization=f"Bearer {token}")


async def test_no_line_tells_of_the_game(tmp_path: Path) -> None:
    stores = tmp_path / "stores"
    house = HouseProcess(tmp_path, **{"log-level": "DEBUG", "log-format": "json"})
    async with house, party(house.url, folder=stores, names=NAMES) as guests:
        await guests.sit_down(deck=DECK)
        known = secrets_of(guests, stores)
        await play_everything(guests)
        token = next(one for one in known if one.startswith("host."))
        await misbehave(house, guests.id, token)
        await house.kill()
        await house.open()
        await guests.all_see(lambda table: table.version > 0)
        await play_to_the_end(guests)
        known |= secrets_of(guests, stores)
        secret = re.findall(rb'"secret":"([0-9a-f]+)"', await house.bundle(guests.id))
        known |= {one.decode() for one in secret}
    known.add((tmp_path / "dealer.db.key").read_bytes().hex())
    assert len(known) > 70
    lines = [line for line in house.output.read_text().splitlines() if line.startswith("{")]
    told = [json.loads(line) for line in lines]
    events = [one["event"] for one in told]
    assert events.count("ready") == 2
    assert {"start", "migrated", "drain", "drained", "stop", "client suspect"} <= set(events)
    assert any(one.get("table") == guests.id for one in told)
    assert all({"at", "level", "event"} <= set(one) for one in told)
    output = house.output.read_text()
    assert [one for one in known if one in output] == []
    assert house.database.name in output


async def test_a_disk_in_trouble_is_told_once_and_so_is_its_end(tmp_path: Path) -> None:
    house = HouseProcess(tmp_path, **{"log-format": "json", "busy": 0})
    async with house:
        guest = await Guest.arrive(house.port)
        with closing(connect(house.database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            for _ in range(3):
                with pytest.raises(Refusal) as refused:
                    await guest.ask("table.open")
                assert refused.value.reason == "unavailable"
            other.execute("ROLLBACK")
        await guest.ask("table.open")
    lines = [json.loads(x) for x in house.output.read_text().splitlines() if x.startswith("{")]
    trouble = [one for one in lines if one["event"].startswith("database")]
    assert [one["event"] for one in trouble] == ["database trouble", "database recovered"]
    assert "Another program holds" in trouble[0]["says"]
