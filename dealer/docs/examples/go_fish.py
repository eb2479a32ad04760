"""Go Fish by two programs: `python go_fish.py Ada`, and with the id that it prints `… Bob ID`.

Turns, questions and answers are notes, which are in the log as every move is. Each program reads
all events in their order, and acts when one concerns it.
"""

import asyncio
import random
import sys
from collections import Counter

import dealer
from dealer.game.events import CardMoved, NoteAdded

URL = "ws://localhost:8080/ws"


async def main(name: str, table_id: str | None = None) -> None:
    async with dealer.connect(URL, name=name) as house:
        opened = table_id or await house.open(deck="52", seats=2, name="Go Fish")
        table = await house.join(opened, bot=True)
        events = table.events()  # before the first move, so that none is missed
        if table_id is None:
            print(table.id, flush=True)
            await table.until(lambda table: len(table.seats) == 2)
            await table.round_open()
            await table.shuffle()
            await table.deal(7)
            await table.note("turn", "1")
        books: Counter[str] = Counter()  # cards in books, by pile
        async for version, _at, event in events:
            if isinstance(event, CardMoved) and event.to.startswith("pile:books:"):
                books[event.to] += 1
                if books.total() == 52:
                    break
            elif isinstance(event, NoteAdded):
                if event.seat != table.seat:
                    print(f"{version}: {event.kind} {event.text}", flush=True)
                await react(table, event)
        print(f"Books: {books['pile:books:1'] // 4} to {books['pile:books:2'] // 4}", flush=True)
        if table.seat == 1:
            await table.close()
        await table.until(lambda table: table.closed, timeout=60)
        print("doubts:", table.doubts)


async def react(table: dealer.RemoteTable, note: NoteAdded) -> None:
    other = 3 - table.seat
    if note.kind == "turn" and note.text == str(table.seat):
        await ask(table)
    elif note.kind == "ask" and note.seat == other:
        if cards := [card for card in table.hand if card[0] == note.text]:
            await table.give(cards, to=other)
        await table.note("answer", "here you are" if cards else "go fish")
    elif note.kind == "answer" and note.seat == other:
        over = note.text == "go fish"
        if over and table.deck_count:
            await table.draw()
        await ask(table, over)


async def ask(table: dealer.RemoteTable, over: bool = False) -> None:
    """Lay down books, and ask for a rank that is in the hand, or let the other one ask."""
    if not table.hand and table.deck_count and not over:
        await table.draw()
    for rank in {card[0] for card in table.hand}:
        book = [card for card in table.hand if card[0] == rank]
        if len(book) == 4:
            await table.play(book, pile=f"books:{table.seat}")
    if table.round is None or sum(map(len, table.piles.values())) == 52:
        return  # that was the last book
    if table.hand and not over:
        await table.note("ask", random.choice(table.hand)[0])
    else:
        await table.note("turn", str(3 - table.seat))


asyncio.run(main(*sys.argv[1:]))
