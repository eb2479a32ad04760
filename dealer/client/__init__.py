"""A player at the other end of the wire, who believes nothing that can be checked.

    import asyncio, dealer

    async def main() -> None:
        async with dealer.connect("ws://localhost:8080/ws", name="Ada") as house:
            table = await house.join(await house.open(deck="52"))
            await table.round_open()
            await table.shuffle()
            print(await table.draw(2), table.hand, table.deck_count)

    asyncio.run(main())

The connection is built again when it breaks, and every wish is carried out once. The client brings
its own random bytes to each shuffle, keeps its own tree of the log, and checks every card against
what was sealed before the deal; HouseCheated says when the house did not play fair.
"""

from dealer.client.connection import Connection
from dealer.client.happenings import Happenings
from dealer.client.house import House, connect
from dealer.client.questions import Patience
from dealer.client.store import SavedHead, Store
from dealer.client.table import RemoteTable
from dealer.client.witness import Evidence, Happened, Witness
from dealer.proof.checkpoint import Cosigner

__all__ = [
    "Connection",
    "Cosigner",
    "Evidence",
    "Happened",
    "Happenings",
    "House",
    "Patience",
    "RemoteTable",
    "SavedHead",
    "Store",
    "Witness",
    "connect",
]
