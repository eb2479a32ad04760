"""Players that say that they are bots when they join."""

from __future__ import annotations

import pytest

import dealer
from dealer.game.events import SeatTaken
from tests.gateway.http_client import get
from tests.gateway.rpc_client import eventually
from tests.web.client.node_client import NodeClient
from tests.web.js_verifier import run_module

pytestmark = pytest.mark.slow

URL = "ws://127.0.0.1:{}/ws"


async def test_the_event_the_snapshot_and_the_history_say_so(gateway) -> None:
    url = URL.format(gateway.port)
    async with (
        dealer.connect(url, name="Ada") as hers,
        dealer.connect(url, name="Robo") as its,
        dealer.connect(url) as third,
    ):
        ada = await hers.join(await hers.open())
        stream = ada.events()
        robo = await its.join(ada.id, bot=True)
        async for _, _, event in stream:
            if isinstance(event, SeatTaken):
                assert (event.name, event.bot) == ("Robo", True)
                break
        watched = await third.watch(ada.id)
        for table in (ada, robo, watched):
            assert [player.bot for player in table.state.seats.values()] == [False, True]
        await ada.round_open()
        await ada.round_close()
        found = await get(gateway.port, f"/tables/{ada.id}/history.txt")
        assert "Robo (a bot)" in found.text
        assert "Ada (a bot)" not in found.text


async def test_a_javascript_client_joins_as_a_bot(gateway) -> None:
    async with (
        dealer.connect(URL.format(gateway.port), name="Ada") as house,
        NodeClient() as clients,
    ):
        ada = await house.join(await house.open())
        await clients.run(
            """
            const house = await client.connect(args.url, { name: "Robo" });
            its.house = house;
            await house.join(args.table, { bot: true });
            """,
            url=URL.format(gateway.port),
            table=ada.id,
        )
        await eventually(lambda: len(ada.seats) == 2)
        assert ada.state.seats[2].bot


def test_the_pages_mark_bots() -> None:
    """The marks of a seat at the table, and the names in the audit page's replay."""
    found = run_module("""
        import { marksOf, marksText } from "./dealer/web/table/seat_marks.js";
        import { playerAt } from "./dealer/web/audit/sentences.js";
        const seats = [{ seat: 1, name: "Ada", bot: false }, { seat: 2, name: "Robo", bot: true }];
        const table = { state: { seats, hostSeat: null } };
        const markers = { dealerButton: null, turn: null, scores: new Map() };
        const moment = { seats: new Map([[1, "Ada"], [2, "Robo"]]), bots: new Set([2]) };
        console.log(JSON.stringify([1, 2].map((seat) => [
          marksText(marksOf({ table, markers }, seat)), playerAt(moment, seat),
        ])));
    """)
    assert found == [["", "Ada (seat 1)"], ["bot", "Robo (bot) (seat 2)"]]
