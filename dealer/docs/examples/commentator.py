"""A commentator: prints who has which cards after each move: `python commentator.py LINK`.

LINK is that of a table's broadcast. Each unseen card is as likely as every other one to be the next
from the deck: the odds are left to the reader.
"""

import asyncio
import sys
from collections import Counter

import dealer


async def main(link: str) -> None:
    server = link.partition("/tables/")[0].replace("http", "ws", 1)
    async with dealer.connect(f"{server}/ws") as house:
        table = await house.broadcast(link)
        events = table.events()
        print(said := comment(table), flush=True)
        async for _ in events:  # ends when the table is closed
            if (now := comment(table)) != said:
                print(said := now, flush=True)


def comment(table: dealer.RemoteTable) -> str:
    """The cards of each player and pile in a line, and those that are unseen."""
    if table.state.round is None:
        return "No round is open."
    stacks = [(name, table.stack(f"hand:{seat}")) for seat, name in table.seats.items()]
    stacks += [(f"pile {name}", cards) for name, cards in table.piles.items()]
    seen = Counter(card for _, cards in stacks for card in cards)
    unseen = (Counter(table.state.round.opened) - seen).elements()
    lines = [f"{name}: {' '.join(cards)}" for name, cards in stacks if cards]
    return "\n".join([*lines, f"Unseen: {' '.join(unseen)}"])


try:
    asyncio.run(main(*sys.argv[1:]))
except dealer.errors.DealerError as error:  # such as a link that was taken back
    print(error)
