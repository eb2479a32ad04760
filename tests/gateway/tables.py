"""Tables for the tests, with connected clients."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from dealer.gateway import Gateway
from dealer.proof.round_keys import player_digest
from tests.gateway.rpc_client import RpcClient


@dataclass
class SeatedTable:
    """A table with a host, which has no seat, and players, each on a connection of its own."""

    id: str
    host: RpcClient
    host_token: str
    players: list[RpcClient]
    joined: list[dict[str, Any]]
    """The result of each player's `table.join`."""

    @property
    def tokens(self) -> list[str]:
        return [result["token"] for result in self.joined]


async def seat_players(
    connect: Any, gateway: Gateway, *, players: int = 2, **rules: Any
) -> SeatedTable:
    """A new table with this many players and no round."""
    host = await connect(gateway)
    opened = await host.call("table.open", rules=rules)
    clients, joined = [], []
    for number in range(players):
        client = await connect(gateway)
        invite = {"invite": opened["invite"]} if "join" in rules else {}
        name = f"player {number + 1}"
        joined.append(await client.call("table.join", table=opened["table"], name=name, **invite))
        clients.append(client)
    return SeatedTable(opened["table"], host, opened["host_token"], clients, joined)


async def seat_and_shuffle(connect: Any, gateway: Gateway, **settings: Any) -> SeatedTable:
    """The same with a deck of 52 that is shuffled with the house's entropy alone."""
    table = await seat_players(connect, gateway, **settings)
    await table.host.call("round.open", entropy="house")
    await table.host.call("deck.shuffle")
    return table


def nonce_of(seat: int) -> bytes:
    return hashlib.sha256(b"nonce %d" % seat).digest()


async def commit_entropy(table: SeatedTable, *, round: int = 1, k: int = 0) -> None:
    """Each player sends the digest of the nonce of its seat."""
    for joined, client in zip(table.joined, table.players, strict=True):
        await commit(table, client, joined["seat"], round=round, k=k)


async def commit(
    table: SeatedTable, client: RpcClient, seat: int, *, round: int = 1, k: int = 0
) -> None:
    digest = player_digest(
        table=bytes.fromhex(table.id), round=round, k=k, seat=seat, nonce=nonce_of(seat)
    )
    await client.call("entropy.commit", round=round, k=k, digest=digest.hex())


async def reveal_entropy(table: SeatedTable, *, round: int = 1, k: int = 0) -> None:
    """Each player sends the nonce of its seat."""
    for joined, client in zip(table.joined, table.players, strict=True):
        nonce = nonce_of(joined["seat"]).hex()
        await client.call("entropy.reveal", round=round, k=k, nonce=nonce)
