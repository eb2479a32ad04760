"""Honest players at several tables, one draw in flight at each table, with latencies.

They play at a person's pace: rounds with every seat's entropy in the shuffle, one card at a time
with pauses, sometimes a card played to the table, and a connection that breaks and resumes. The
versions that a client receives must be consecutive, and at the end every acknowledged card must be
in the log, in a bundle that verifies.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from websockets.exceptions import ConnectionClosed

from dealer.proof.round_keys import player_digest
from dealer.proof.verify import verify
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.harness import card_truth as truth

PATIENT = 60.0
"""Seconds without an answer after which a request counts as lost."""

PAUSE = (0.15, 0.35)
"""Least and most seconds between two draws at one table."""

SEATS, HAND = 4, 12


@dataclass
class Measured:
    """Milliseconds of each draw by the `phase` in which it began, and faults as sentences."""

    phase: str = ""
    latencies: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    resumes: int = 0
    faults: list[str] = field(default_factory=list)

    def percentile(self, phase: str, share: float) -> float:
        """Milliseconds; 0.0 if nothing was measured."""
        ordered = sorted(self.latencies[phase])
        return round(ordered[int(len(ordered) * share)], 2) if ordered else 0.0


class Player:
    """One seat: its connection, its token, and the last version received without a gap."""

    def __init__(self, port: int, address: str, table: str, name: str) -> None:
        self._port = port
        self._address = address
        self._table = table
        self._name = name
        self.client: RpcClient
        self.token = ""
        self.seat = 0
        self.version = 0

    async def connect(self) -> None:
        self.client = await RpcClient.connect(self._port, local_addr=(self._address, 0))

    async def join(self) -> None:
        await self.connect()
        joined = await self.ask("table.join", name=self._name)
        self.token, self.seat, self.version = joined["token"], joined["seat"], joined["version"]

    async def ask(self, method: str, **params: Any) -> Any:
        async with asyncio.timeout(PATIENT):
            cmd = secrets.token_hex(16)
            return await self.client.call(method, table=self._table, cmd=cmd, **params)

    async def wait_for_event(self, kind: str) -> dict[str, Any]:
        """Wait for an event of this type since the last `checked`; its public part."""
        found: list[dict[str, Any]] = []

        def arrived() -> bool:
            found.extend(event for event in self.client.events if event["type"] == kind)
            return bool(found)

        async with asyncio.timeout(PATIENT):
            await self.client.until(arrived)
        public: dict[str, Any] = found[-1]["public"]
        return public

    def checked(self) -> Iterator[str]:
        """Sentences about missing or repeated versions; then discard what was received."""
        for version in self.client.versions:
            if version != self.version + 1:
                yield f"{self._name} received version {version} after {self.version}"
            self.version = version
        self.client.notifications.clear()
        self.client.frames.clear()

    async def resume(self) -> None:
        """Abort the connection and resume on another one, after the last version received."""
        self.client.socket.transport.abort()
        await self.client.closed
        await self.connect()
        async with asyncio.timeout(PATIENT):
            await self.client.call(
                "table.resume", table=self._table, token=self.token, after=self.version
            )


class Table:
    """Four players at one table, all from one `address`; the host has its own connection."""

    def __init__(self, port: int, address: str, measured: Measured, chance: random.Random) -> None:
        self._port = port
        self._address = address
        self._measured = measured
        self._chance = chance
        self._players: list[Player] = []
        self._host: RpcClient
        self.id = ""
        self._acknowledged: list[tuple[int, int, list[int], list[str]]] = []
        self._round = 0

    async def sit_down(self) -> None:
        self._host = await RpcClient.connect(self._port, local_addr=(self._address, 0))
        # All seats are taken: a new player at an open table may delay its shuffles, by the rules.
        opened = await self._host.call(
            "table.open", name=f"Game of {self._address}", rules={"seats": SEATS}
        )
        self.id, self._host_token = opened["table"], opened["host_token"]
        for number in range(SEATS):
            player = Player(self._port, self._address, self.id, f"Player {number + 1}")
            await player.join()
            self._players.append(player)

    async def play(self, enough: asyncio.Event) -> None:
        """Play rounds until `enough` is set, and close the last one."""
        try:
            while not enough.is_set():
                await self._play_round(enough)
        except Refusal as refusal:
            self._measured.faults.append(f"an honest player was refused: {refusal.error}")
        except (ConnectionClosed, asyncio.CancelledError, OSError) as error:
            self._measured.faults.append(f"an honest player was cut off: {error!r}")
        except TimeoutError:
            self._measured.faults.append(f"an honest player waited over {PATIENT:.0f} s")

    async def _ask_host(self, method: str, **params: Any) -> Any:
        async with asyncio.timeout(PATIENT):
            return await self._host.call(method, table=self.id, **params)

    async def _play_round(self, enough: asyncio.Event) -> None:
        self._round = (await self._ask_host("round.open", entropy="players"))["round"]
        await self._shuffle()
        for turn in range(SEATS * HAND):
            if enough.is_set():
                break
            await self._draw(self._players[turn % SEATS])
            await asyncio.sleep(self._chance.uniform(*PAUSE))
        self._check()
        await self._ask_host("round.close")
        player = self._chance.choice(self._players)
        await player.wait_for_event("RoundClosed")
        self._measured.faults += player.checked()
        await player.resume()
        self._measured.resumes += 1
        self._host.frames.clear()

    async def _shuffle(self) -> None:
        table, nonces = bytes.fromhex(self.id), [secrets.token_bytes(32) for _ in self._players]
        await asyncio.gather(
            *(
                player.ask(
                    "entropy.commit",
                    round=self._round,
                    k=0,
                    digest=player_digest(
                        table=table, round=self._round, k=0, seat=player.seat, nonce=nonce
                    ).hex(),
                )
                for player, nonce in zip(self._players, nonces, strict=True)
            )
        )
        await self._ask_host("deck.shuffle")
        await asyncio.gather(
            *(
                player.ask("entropy.reveal", round=self._round, k=0, nonce=nonce.hex())
                for player, nonce in zip(self._players, nonces, strict=True)
            )
        )

    async def _draw(self, player: Player) -> None:
        phase, begun = self._measured.phase, time.perf_counter()
        drawn = await player.ask("deck.draw")
        self._measured.latencies[phase].append((time.perf_counter() - begun) * 1000)
        self._acknowledged.append((drawn["version"], self._round, drawn["slots"], drawn["cards"]))
        if self._chance.random() < 0.1:
            await player.ask("hand.play", cards=drawn["slots"])

    def _check(self) -> None:
        for player in self._players:
            self._measured.faults += player.checked()

    async def audit(self, bundle: bytes) -> list[str]:
        """Sentences about differences between the bundle and the acknowledged draws."""
        lines = bundle.removesuffix(b"\n").split(b"\n")
        report = await asyncio.to_thread(verify, lines)
        if report.fault is not None:
            return [f"the bundle of an honest table does not verify: {report.fault}"]
        log = truth.leaves(lines)
        faces, closed = truth.faces(log), truth.round_keys(log)
        faults = []
        for version, round_, slots, cards in self._acknowledged:
            event = log[version - 1]
            if event["type"] != "CardDrawn" or [event["public"]["slot"]] != slots:
                faults.append(f"version {version} is not the draw that was acknowledged")
            elif round_ in closed and [faces[round_, slot] for slot in slots] != cards:
                faults.append(f"the card of version {version} is not the one that was acknowledged")
        return faults

    async def leave(self) -> None:
        for client in (self._host, *(player.client for player in self._players)):
            await client.close()


async def resumed_from_the_start(port: int, table: Table) -> list[str]:
    """Faults, unless a player that resumes after version 0 receives every version once."""
    player = table._players[0]
    client = await RpcClient.connect(port)
    back = await client.call("table.resume", table=table.id, token=player.token, after=0)
    faults = []
    if not back.get("reset"):
        async with asyncio.timeout(PATIENT):
            await client.until(lambda: client.notices("resumed"))
        if client.versions != list(range(1, back["version"] + 1)):
            faults.append("a resume from the start has gaps or doubles")
    await client.close()
    return faults
