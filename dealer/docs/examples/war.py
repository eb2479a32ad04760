"""War, played by two programs: `python war.py Ada`, and with the id that it prints `… Bob ID`.

Who wins the most cards in one pass through both hands has won. Each program reads all events in
their order: the table may be further, and a trick on it be taken before a program looks.
"""

import asyncio
import sys
from collections import Counter

import dealer
from dealer.game.events import CardMoved, CardShown

URL = "ws://localhost:8080/ws"
RANKS = "23456789TJQKA"


async def main(name: str, table_id: str | None = None) -> None:
    async with dealer.connect(URL, name=name) as house:
        opened = table_id or await house.open(deck="52", seats=2, name="War")
        table = await house.join(opened, bot=True)
        events = table.events()  # before the first move, so that none is missed
        if table_id is None:
            print(table.id, flush=True)
            await table.until(lambda table: len(table.seats) == 2)
            await table.round_open()
            await table.shuffle()
            await table.deal(26)
        await table.until(lambda table: len(table.hand) >= 26, timeout=600)
        await play(table, events)
        print("doubts:", table.doubts)


async def play(table: dealer.RemoteTable, events: dealer.client.EventStream) -> None:
    won: Counter[str] = Counter()
    owner: dict[int, int] = {}  # the seat of each card in the pile, by the card's slot
    up: dict[int, str] = {}  # the card with which each seat fights
    await table.play(table.hand[0], pile="war")
    async for version, _at, event in events:
        if isinstance(event, CardMoved) and event.to == "pile:war":
            owner[event.slot] = int(event.source.removeprefix("hand:"))
        elif isinstance(event, CardShown):
            up[owner[event.slot]] = event.card
            if len(up) < 2:
                continue
            print(f"{version}: {up[1]} against {up[2]}", flush=True)
            lead = RANKS.index(up[1][0]) - RANKS.index(up[2][0])
            up = {}
            if lead == 0 and not table.hand:
                break
            if lead == 0:  # war: up to three cards face down, and one face up
                if down := table.hand[: min(3, len(table.hand) - 1)]:
                    await table.play(down, pile="war", face="down")
                await table.play(table.hand[0], pile="war")
            elif (1 if lead > 0 else 2) == table.seat:
                await table.move("war", to=f"won:{table.seat}", whole=True)
        elif isinstance(event, CardMoved) and event.source == "pile:war":
            won[event.to] += 1
            del owner[event.slot]
            if not owner:  # the whole trick was taken
                if not table.hand:
                    break
                await table.play(table.hand[0], pile="war")
    print(f"Cards: {won['pile:won:1']} to {won['pile:won:2']}", flush=True)
    if table.seat == 1:
        await table.close()
    await table.until(lambda table: table.closed, timeout=60)


asyncio.run(main(*sys.argv[1:]))
