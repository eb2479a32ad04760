"""A bot for a table that a person has opened: `python bot.py Robot ID`, with the id of its address.

It plays its highest card whenever the turn marker comes to its seat, and passes the turn on. Killed
and started again, it returns to its seat by the folder `seat-of-Robot`, and reads from the log
whether it has played in this turn: it may have been killed before it passed the turn on.
"""

import asyncio
import sys

import dealer
from dealer.game.events import CardMoved, NoteAdded

URL = "ws://localhost:8080/ws"
RANKS = "X23456789TJQKA"

moved: set[str] = set()  # the stacks of which cards were moved in this turn


async def main(name: str, table_id: str) -> None:
    async with dealer.connect(URL, store=f"seat-of-{name}", on_event=note_moves) as house:
        table = await house.join(table_id, name=name, bot=True)
        events = table.events()
        print(f"{name} has seat {table.seat}.", flush=True)
        await move(table)  # it may be our turn already
        async for _ in events:  # ends when the table is closed
            await move(table)
        print("doubts:", table.doubts)


def note_moves(_table_id: str, verified: dealer.client.TableEvent) -> None:
    """Called with each event, also with the earlier ones after a restart."""
    _, _, event = verified
    if isinstance(event, NoteAdded) and event.kind == "turn":
        moved.clear()
    elif isinstance(event, CardMoved):
        moved.add(event.source)


async def move(table: dealer.RemoteTable) -> None:
    if table.closed or table.markers.turn != table.seat:
        return
    try:
        if f"hand:{table.seat}" not in moved:
            if not table.hand:
                return
            card = max(table.hand, key=lambda card: RANKS.index(card[0]))
            await table.play(card)
            print(f"Plays {card}.", flush=True)
        seats = list(table.seats)
        following = seats[(seats.index(table.seat) + 1) % len(seats)]
        await table.note("turn", str(following))
        print(f"Seat {following} is next.", flush=True)
    except dealer.Refused as refused:  # such as a card that the host has just taken
        print(f"Refused: {refused}", flush=True)


asyncio.run(main(*sys.argv[1:]))
