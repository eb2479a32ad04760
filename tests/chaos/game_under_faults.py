"""A game under injected faults; at the end the records of all clients are compared with the log.

Four players shuffle, deal, draw and discard, concurrently where the rules allow it, and a spectator
watches. The caller injects the faults. Then the log is compared with every client's own record of
the events and answers that it received.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dealer.client import RemoteTable
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.harness.card_truth import Leaf, faces, leaves
from tests.harness.client_record import Answer
from tests.harness.server_process import PATIENT
from tests.harness.table_of_clients import Clients, RecordedClient, connect_clients


class PlayedServer(Protocol):
    """The server of a game: ServerProcess, Nodes and Composed implement it."""

    @property
    def url(self) -> str: ...

    async def bundle(self, table: str) -> bytes: ...


FaultInjector = Callable[[asyncio.Task[None]], Awaitable[None]]
"""Injects faults until there were enough, or until the game's task, its argument, has ended."""


@dataclass
class Figures:
    """Figures of a trial; `faults` are violated guarantees, one sentence each."""

    rounds: int = 0
    shuffles: int = 0
    voided: int = 0
    seats_left_out: int = 0
    events: int = 0
    acknowledged: int = 0
    resumes: int = 0
    snapshot_instead: int = 0
    refusals: int = 0
    received_again: int = 0
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add the figures of another game."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        self.seconds = round(self.seconds, 1)


async def play_through(
    server: PlayedServer,
    folder: Path,
    inject_faults: FaultInjector,
    figures: Figures,
    *,
    url: str | None = None,
) -> None:
    """Play on an open server, or by the `url` of a relay to it, until the faults are over.

    The clients have their stores in `folder`. Add violated guarantees to `figures`.
    """
    begun = time.monotonic()
    async with connect_clients(url or server.url, folder=folder / "clients") as clients:
        await clients.sit_down(seats=len(clients.players))
        reading = [asyncio.create_task(versions(client.table)) for client in clients.clients]
        enough = asyncio.Event()
        playing = asyncio.create_task(play(clients, enough))
        try:
            await inject_faults(playing)
            enough.set()
            async with asyncio.timeout(PATIENT):
                await playing
        except BaseException:
            for task in (playing, *reading):
                task.cancel()
            await asyncio.gather(playing, *reading, return_exceptions=True)
            raise
        await clients.all_see(lambda table: table.closed)
        received = [await one for one in reading]
        bundle = read(await server.bundle(clients.id))
        saved = [note for client in clients.clients for note in client.table.checkpoints]
        key = clients.tables[0].key
    report = verify(bundle, key=key, saved=saved)
    if not report.ok:
        figures.faults.append(f"the bundle does not verify: {report.verdicts()}")
    remarks = report.remarks
    figures.rounds, figures.shuffles = remarks.rounds, remarks.shuffles
    figures.voided, figures.seats_left_out = remarks.voided, remarks.left_out
    log = leaves(bundle)
    figures.events = len(log)
    lines = bundle[1 : 1 + len(log)]
    for client, seen in zip(clients.clients, received, strict=True):
        compare_received(client, seen, lines, figures)
    compare_answered(clients, log, figures)
    compare_cards(clients, log, figures)
    figures.seconds = round(time.monotonic() - begun, 1)


async def ended_within(playing: asyncio.Task[None], seconds: float) -> bool:
    """Wait for this long; True if the game ended before, which only an error causes."""
    done, _ = await asyncio.wait((playing,), timeout=seconds)
    return bool(done)


async def versions(table: RemoteTable) -> list[int]:
    """The version of each event from the client's iterator."""
    return [event.version async for event in table.events()]


# The game: requests that are retried until they succeed


async def play(clients: Clients, enough: asyncio.Event) -> None:
    """Rounds of shuffling, dealing, drawing and discarding, until `enough` is set."""
    host, *others = clients.tables
    while not enough.is_set():
        await host.round_open()
        await host.shuffle()
        await host.deal(2)
        await clients.all_see(lambda table: table.deck_count == 44)
        for _ in range(3):
            await asyncio.gather(*(draw_and_discard(table) for table in clients.tables))
            await others[0].draw(end="random")
            await host.until(lambda table: len(table.piles["discard"]) >= 12)
            discards = len(host.piles["discard"])
            await host.return_cards(count=discards, source="pile:discard")
            await host.shuffle()
        await asyncio.gather(*(table.show(table.hand[0]) for table in clients.tables))
        await host.round_close()
    await host.close()


async def draw_and_discard(table: RemoteTable) -> None:
    for _ in range(3):
        (card,) = await table.draw(1)
        await table.discard(card)


# Comparison of the log with each client's events, answers and cards


def compare_received(
    client: RecordedClient, seen: list[int], log: list[bytes], figures: Figures
) -> None:
    """A client received exactly the log, and its event iterator yields each event once."""
    record = client.record
    figures.resumes += record.resumes
    figures.received_again += record.again
    figures.refusals += sum(answer.refusal is not None for answer in record.answers)
    snapshot_instead = sum('"method":"snapshot"' in frame for frame in record.frames)
    figures.snapshot_instead += snapshot_instead
    if snapshot_instead:
        figures.faults.append(f"{client.name} got a snapshot instead of events")
    wrong = record.different + sum(
        version > len(log) or log[version - 1] != leaf for version, leaf in record.leaves.items()
    )
    figures.changed += wrong
    if wrong:
        figures.faults.append(f"{client.name} received {wrong} events that differ from the log")
    expected = list(range(len(log) - len(seen) + 1, len(log) + 1))
    if seen != expected:
        figures.faults.append(f"{client.name} read events with a gap, twice, or out of order")
    missing = set(expected) - set(record.leaves)
    if missing:
        figures.faults.append(f"{client.name} never received {sorted(missing)}")


CAUSED = {
    "round.open": "RoundOpened",
    "round.close": "RoundClosed",
    "table.close": "TableClosed",
    "deck.shuffle": "ShuffleStarted",
    "deck.deal": "CardDrawn",
    "hand.discard": "CardMoved",
    "hand.show": "CardShown",
    "deck.return": "CardMoved",
    "deck.draw": "CardDrawn",
    "entropy.commit": "EntropyCommitted",
    "entropy.reveal": "EntropyRevealed",
    "table.join": "SeatTaken",
    "table.open": "TableOpened",
}
"""The type of the events of a method; a draw at random also shuffles."""


def compare_answered(clients: Clients, log: list[Leaf], figures: Figures) -> None:
    """Every successful command is in the log at the version of its answer, and only there.

    Each client retries until it is answered, so the log has no command without an answer.
    """
    granted: Counter[str] = Counter()
    # A voided shuffle is started again automatically.
    granted["ShuffleStarted"] = sum(event["type"] == "ShuffleVoided" for event in log)
    for client in clients.clients:
        answers = {answer.params["cmd"]: answer for answer in client.record.changes()}
        for answer in answers.values():
            if answer.method not in CAUSED:
                continue
            figures.acknowledged += 1
            kind, count = CAUSED[answer.method], how_many(answer)
            granted[kind] += count
            if answer.params.get("from") == "random":
                granted["ShuffleStarted"] += 1
            last = answer.result["version"]
            where = log[last - count : last] if answer.method in ENDS_WITH else log[:last]
            found = sum(event["type"] == kind for event in where)
            if found < count or last > len(log):
                figures.lost += 1
                figures.faults.append(f"{client.name}'s {answer} is not in the log")
    logged = Counter(event["type"] for event in log)
    for kind in set(CAUSED.values()):
        if logged[kind] != granted[kind]:
            figures.doubled += max(0, logged[kind] - granted[kind])
            figures.lost += max(0, granted[kind] - logged[kind])
            figures.faults.append(f"{kind}: {logged[kind]} in the log, {granted[kind]} granted")


ENDS_WITH = frozenset({"round.open", "round.close", "deck.deal", "deck.draw", "hand.discard",
                       "hand.show", "deck.return", "table.close"})  # fmt: skip
"""Methods whose events are the last ones up to the version in their answer."""


def how_many(answer: Answer) -> int:
    """The number of events of its type that a successful command caused."""
    match answer.method:
        case "deck.deal":
            return int(answer.result["dealt"])
        case "deck.draw":
            return len(answer.result["cards"])
        case "hand.discard" | "hand.show":
            return len(answer.params["cards"])
        case "deck.return":
            return int(answer.params["count"])
        case _:
            return 1


def compare_cards(clients: Clients, log: list[Leaf], figures: Figures) -> None:
    """The cards of the answers are those that the closed rounds show to have been drawn."""
    truth = faces(log)
    drawn = {
        leaf["version"]: (public["slot"], truth[public["round"], public["slot"]], public["seat"])
        for leaf in log
        for public in (leaf["public"],)
        if leaf["type"] == "CardDrawn"
    }
    for client in clients.players:
        for version, slot, card in cards_answered(client):
            if drawn.get(version) != (slot, card, client.seat):
                figures.changed += 1
                figures.faults.append(
                    f"{client.name} was given {card} in slot {slot} at version {version}, and the "
                    f"log has {drawn.get(version)}"
                )


def cards_answered(client: RecordedClient) -> Iterator[tuple[int, int, str]]:
    """(version, slot, card) of all answers to the client's draws."""
    for answer in client.record.changes():
        if answer.method == "deck.draw":
            cards, slots = answer.result["cards"], answer.result["slots"]
            first = answer.result["version"] - len(cards) + 1
            for offset, (slot, card) in enumerate(zip(slots, cards, strict=True)):
                yield first + offset, slot, card
