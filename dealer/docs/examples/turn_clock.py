"""A service that keeps time: a turn that lasts longer than its clock goes to the next player.

KEY is a service key with the rights `open` and `read`: `KEY=dk_… python turn_clock.py`.
"""

import asyncio
import os

import dealer

URL = "ws://localhost:8080/ws"


async def keep_time(house, table_id):
    """Pass on each turn whose time is up, as long as the table is open."""
    table = await house.watch(table_id)
    while not table.closed:
        turn, seconds = seen = table.markers.turn, table.markers.clock
        try:
            await table.until(
                lambda now, seen=seen: (now.markers.turn, now.markers.clock) != seen,
                timeout=seconds if turn and seconds else None,
            )
        except TimeoutError:
            if seats := sorted(table.seats):
                following = next((seat for seat in seats if seat > turn), seats[0])
                await table.note(kind="turn", text=str(following))


async def main() -> None:
    async with dealer.connect(URL, key=os.environ["KEY"]) as house:
        opened = await house.open(seats=4)
        print(opened.id, flush=True)
        await keep_time(house, opened.id)


asyncio.run(main())
