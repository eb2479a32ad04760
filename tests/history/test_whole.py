"""A bundle of the server is verified and written as its history."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from dealer.errors import ProofFault
from dealer.eventlog import Log
from dealer.eventlog.keys import key_file, load_house_keys
from dealer.game.cards import STANDARD
from dealer.game.commands import (
    Actor,
    CloseRound,
    Command,
    Deal,
    Move,
    OpenRound,
    Show,
    StartShuffle,
    TakeSeat,
)
from dealer.history.replay import Game
from dealer.history.text import write
from dealer.service.service import Service

HOST = Actor(host=True)


@pytest.fixture
async def lines(tmp_path: Path) -> list[str]:
    """The bundle of a hold'em hand of three, burns before each street, one hand shown."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with await Log.open(url) as log:
        service = Service(
            log, await load_house_keys(log, key_file(url), fresh=secrets.token_bytes(32))
        )
        live, _ = await service.open_table({"game": "holdem", "name": "Friday"})
        commands: list[Command] = [TakeSeat(name) for name in ("Ada", "Bob", "Cleo")]
        commands += [OpenRound(HOST, STANDARD, "house", 1000, 1000), StartShuffle(HOST)]
        commands.append(Deal(HOST, 2))
        for count in (3, 1, 1):
            commands.append(Move(HOST, "burn", "deck", "pile:burn", count=1))
            commands.append(Move(HOST, "pile", "deck", "pile:board", count=count, face="up"))
        for command in commands:
            await service.execute(live, command)
        assert live.table.round is not None
        hand = tuple(live.table.round.cards("hand:2"))
        await service.execute(live, Show(Actor(seat=2), "hand:2", hand))
        await service.execute(live, CloseRound(HOST))
        bundle = [line async for line in service.bundle(live)]
        await service.close()
    return bundle


async def test_the_history_has_every_card_of_the_hand(lines) -> None:
    game = Game.read(lines)
    assert (game.rounds, game.closed, game.house) == (1, 1, "localhost")
    text = "\n".join(write(game))
    for player, name in enumerate(("Ada", "Bob", "Cleo"), 1):
        assert text.count(f"{name} (seat {player}) draws ") == 2
    assert text.count(" in the pile board is turned up for all") == 5
    assert text.count(" is burned from the deck") == 3
    closed = text.partition("the house signs the log so far: ")[2][:64]
    assert closed in game.roots.values()


@pytest.mark.parametrize("encoded", [True, False])
async def test_a_forged_bundle_has_no_history(lines, encoded) -> None:
    forged = [line.replace('"seat":2', '"seat":3') for line in lines]
    with pytest.raises(ProofFault, match="heads"):
        Game.read([line.encode() for line in forged] if encoded else forged)
    with pytest.raises(ProofFault, match="form"):
        Game.read([])
