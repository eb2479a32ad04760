"""A bot for a table that a person has opened: `python bot.py Robot ID`, with the id of its address.

It plays its highest card whenever the turn marker comes to its seat, and passes the turn on. Killed
and started again, it returns to its seat by the folder `seat-of-Robot`, and goes on from there.
"""

import asyncio
import sys

import dealer

URL = "ws://localhost:8080/ws"
RANKS = "X23456789TJQKA"


async def main(name: str, table_id: str) -> None:
    async with dealer.connect(URL, store=f"seat-of-{name}") as house:
        table = await house.join(table_id, name=name, bot=True)
        events = table.events()
        print(f"{name} has seat {table.seat}.", flush=True)
        await move(table)  # it may be our turn already
        async for _ in events:  # ends when the table is closed
            await move(table)
        print("doubts:", table.doubts)


async def move(table: dealer.RemoteTable) -> None:
    if table.closed or table.markers.turn != table.seat or not table.hand:
        return
    card = max(table.hand, key=lambda card: RANKS.index(card[0]))
    try:
        await table.play(card)
        seats = list(table.seats)
        following = seats[(seats.index(table.seat) + 1) % len(seats)]
        await table.note("turn", str(following))
        print(f"{card}, and seat {following} is next.", flush=True)
    except dealer.Refused as refused:  # such as a card that the host has just taken
        print(f"Refused: {refused}", flush=True)


asyncio.run(main(*sys.argv[1:]))
