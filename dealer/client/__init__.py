"""The Python client, which verifies everything that can be verified.

    import asyncio, dealer

    async def main() -> None:
        async with dealer.connect("ws://localhost:8080/ws", name="Ada") as house:
            table = await house.join(await house.open(deck="52"))
            await table.round_open()
            await table.shuffle()
            print(await table.draw(2), table.hand, table.deck_count)

    asyncio.run(main())

The connection is re-established automatically, and each command is executed once. The client sends
its own random bytes to each shuffle, keeps its own Merkle tree of the log, and checks every card
against its commitment; when a check fails it raises HouseCheated.
"""

from dealer.client.event_stream import EventStream
from dealer.client.event_verifier import Evidence, TableEvent
from dealer.client.house import House, connect
from dealer.client.markers import Markers
from dealer.client.requests import RetryPolicy
from dealer.client.storage import SavedHead, Store
from dealer.client.table import RemoteTable
from dealer.proof.checkpoint import Cosigner

__all__ = [
    "Cosigner",
    "EventStream",
    "Evidence",
    "House",
    "Markers",
    "RemoteTable",
    "RetryPolicy",
    "SavedHead",
    "Store",
    "TableEvent",
    "connect",
]
