"""Tables for the tests, with guests at them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from dealer.gateway import Gateway
from dealer.proof.keys import player_digest
from tests.gateway.guest import Guest


@dataclass
class Seated:
    """A table with a host, who has no seat, and players on connections of their own."""

    id: str
    host: Guest
    host_token: str
    players: list[Guest]
    joined: list[dict[str, Any]]

    @property
    def tokens(self) -> list[str]:
        return [answer["token"] for answer in self.joined]


async def seat_all(arrive: Any, gateway: Gateway, *, players: int = 2, **rules: Any) -> Seated:
    """A new table with so many players, and no round."""
    host = await arrive(gateway)
    opened = await host.ask("table.open", rules=rules)
    guests, joined = [], []
    for number in range(players):
        guest = await arrive(gateway)
        invite = {"invite": opened["invite"]} if "join" in rules else {}
        name = f"player {number + 1}"
        joined.append(await guest.ask("table.join", table=opened["table"], name=name, **invite))
        guests.append(guest)
    return Seated(opened["table"], host, opened["host_token"], guests, joined)


async def shuffled(arrive: Any, gateway: Gateway, **more: Any) -> Seated:
    """The same with a shuffled deck of 52, by the house's entropy alone."""
    table = await seat_all(arrive, gateway, **more)
    await table.host.ask("round.open", entropy="house")
    await table.host.ask("deck.shuffle")
    return table


def nonce_of(seat: int) -> bytes:
    return hashlib.sha256(b"nonce %d" % seat).digest()


async def promise(table: Seated, *, round: int = 1, k: int = 0) -> None:
    """Every player sends the digest of `nonce_of` their seat."""
    for answer, guest in zip(table.joined, table.players, strict=True):
        seat = answer["seat"]
        digest = player_digest(
            table=bytes.fromhex(table.id), round=round, k=k, seat=seat, nonce=nonce_of(seat)
        )
        await guest.ask("entropy.commit", round=round, k=k, digest=digest.hex())


async def reveal(table: Seated, *, round: int = 1, k: int = 0) -> None:
    for answer, guest in zip(table.joined, table.players, strict=True):
        nonce = nonce_of(answer["seat"]).hex()
        await guest.ask("entropy.reveal", round=round, k=k, nonce=nonce)
