"""A game that goes on whatever befalls its house; in the end everybody's records are compared.

Four players shuffle, deal, draw and discard, all at the same time where they may, and an onlooker
watches. Trouble comes from outside. When it is over, the log is compared with every client's own
record of what it was told and of what it was answered.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dealer.client import RemoteTable
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.whole.house import PATIENT, HouseProcess
from tests.whole.nodes import Nodes
from tests.whole.party import Guest, Party, party
from tests.whole.record import Answer
from tests.whole.truth import Leaf, faces, leaves

Trouble = Callable[[asyncio.Task[None]], Awaitable[None]]
"""Makes trouble until it has made enough, or until the game, which it is given, has ended."""


@dataclass
class Figures:
    """What came of it; all of `faults` are promises broken, one sentence each."""

    rounds: int = 0
    shuffles: int = 0
    voided: int = 0
    seats_left_out: int = 0
    events: int = 0
    acknowledged: int = 0
    resumes: int = 0
    sent_back: int = 0
    put_off: int = 0
    told_again: int = 0
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Take in what another game told."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        self.seconds = round(self.seconds, 1)


async def play_through(
    house: HouseProcess | Nodes,
    folder: Path,
    trouble: Trouble,
    figures: Figures,
    *,
    url: str | None = None,
) -> None:
    """Play at an open house, or by the way `url` that leads to it, until the trouble is over.

    The clients keep their stores in `folder`. What was wrong is added to `figures`.
    """
    begun = time.monotonic()
    async with party(url or house.url, folder=folder / "clients") as guests:
        await guests.sit_down(seats=len(guests.players))
        reading = [asyncio.create_task(versions(guest.table)) for guest in guests.guests]
        enough = asyncio.Event()
        playing = asyncio.create_task(play(guests, enough))
        try:
            await trouble(playing)
            enough.set()
            async with asyncio.timeout(PATIENT):
                await playing
        except BaseException:
            for task in (playing, *reading):
                task.cancel()
            await asyncio.gather(playing, *reading, return_exceptions=True)
            raise
        await guests.all_see(lambda table: table.closed)
        told = [await one for one in reading]
        bundle = read(await house.bundle(guests.id))
        saved = [note for guest in guests.guests for note in guest.table.checkpoints]
        key = guests.tables[0].key
    report = verify(bundle, key=key, saved=saved)
    if not report.ok:
        figures.faults.append(f"the bundle does not verify: {report.verdicts()}")
    remarks = report.remarks
    figures.rounds, figures.shuffles = remarks.rounds, remarks.shuffles
    figures.voided, figures.seats_left_out = remarks.voided, remarks.left_out
    log = leaves(bundle)
    figures.events = len(log)
    lines = bundle[1 : 1 + len(log)]
    for guest, seen in zip(guests.guests, told, strict=True):
        compare_told(guest, seen, lines, figures)
    compare_answered(guests, log, figures)
    compare_cards(guests, log, figures)
    figures.seconds = round(time.monotonic() - begun, 1)


async def over(playing: asyncio.Task[None], seconds: float) -> bool:
    """Let the game go on for this long; whether it ended before, which only an error makes it."""
    done, _ = await asyncio.wait((playing,), timeout=seconds)
    return bool(done)


async def versions(table: RemoteTable) -> list[int]:
    """The version of each event as the client's own iterator gives them."""
    return [happened.version async for happened in table.events()]


# The game, a loop of wishes that are never given up


async def play(party: Party, enough: asyncio.Event) -> None:
    """Rounds of shuffling, dealing, drawing and discarding, until it is enough."""
    host, *others = party.tables
    while not enough.is_set():
        await host.round_open()
        await host.shuffle()
        await host.deal(2)
        await party.all_see(lambda table: table.deck_count == 44)
        for _ in range(3):
            await asyncio.gather(*(draw_and_discard(table) for table in party.tables))
            await others[0].draw(end="random")
            await host.until(lambda table: len(table.piles["discard"]) >= 12)
            discards = len(host.piles["discard"])
            await host.return_(count=discards, source="pile:discard")
            await host.shuffle()
        await asyncio.gather(*(table.show(table.hand[0]) for table in party.tables))
        await host.round_close()
    await host.close()


async def draw_and_discard(table: RemoteTable) -> None:
    for _ in range(3):
        (card,) = await table.draw(1)
        await table.discard(card)


# The comparison: the log against what each client was told, answered and dealt


def compare_told(guest: Guest, seen: list[int], log: list[bytes], figures: Figures) -> None:
    """What a client was told is the log: each event, once for whoever reads the client's events."""
    record = guest.record
    figures.resumes += record.resumes
    figures.told_again += record.again
    figures.put_off += sum(answer.refusal is not None for answer in record.answers)
    sent_back = sum('"method":"snapshot"' in frame for frame in record.frames)
    figures.sent_back += sent_back
    if sent_back:
        figures.faults.append(f"{guest.name} had seen events, and was given a snapshot instead")
    wrong = record.different + sum(
        version > len(log) or log[version - 1] != leaf for version, leaf in record.leaves.items()
    )
    figures.changed += wrong
    if wrong:
        figures.faults.append(f"{guest.name} was told {wrong} events that the log has otherwise")
    expected = list(range(len(log) - len(seen) + 1, len(log) + 1))
    if seen != expected:
        figures.faults.append(f"{guest.name} read events with a gap, twice, or out of order")
    missing = set(expected) - set(record.leaves)
    if missing:
        figures.faults.append(f"{guest.name} was never told {sorted(missing)}")


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
"""The type of the events that a method brings about; a draw at random shuffles, too."""


def compare_answered(party: Party, log: list[Leaf], figures: Figures) -> None:
    """Every wish that was granted stands in the log where its answer says, and none stands twice.

    Each client asks until it is answered, so what was granted is also all that may stand there.
    """
    granted: Counter[str] = Counter()
    # A shuffle that is given up begins anew by itself.
    granted["ShuffleStarted"] = sum(event["type"] == "ShuffleVoided" for event in log)
    for guest in party.guests:
        answers = {answer.params["cmd"]: answer for answer in guest.record.changes()}
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
                figures.faults.append(f"{guest.name}'s {answer} is not in the log")
    happened = Counter(event["type"] for event in log)
    for kind in set(CAUSED.values()):
        if happened[kind] != granted[kind]:
            figures.doubled += max(0, happened[kind] - granted[kind])
            figures.lost += max(0, granted[kind] - happened[kind])
            figures.faults.append(f"{kind}: {happened[kind]} in the log, {granted[kind]} granted")


ENDS_WITH = frozenset({"round.open", "round.close", "deck.deal", "deck.draw", "hand.discard",
                       "hand.show", "deck.return", "table.close"})  # fmt: skip
"""Methods whose events are the last ones up to the version that their answer names."""


def how_many(answer: Answer) -> int:
    """Of the events of its type, how many a granted wish brought about."""
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


def compare_cards(party: Party, log: list[Leaf], figures: Figures) -> None:
    """The cards that were answered are those that the closed rounds show to have been drawn."""
    truth = faces(log)
    drawn = {
        leaf["version"]: (public["slot"], truth[public["round"], public["slot"]], public["seat"])
        for leaf in log
        for public in (leaf["public"],)
        if leaf["type"] == "CardDrawn"
    }
    for guest in party.players:
        for version, slot, card in cards_answered(guest):
            if drawn.get(version) != (slot, card, guest.seat):
                figures.changed += 1
                figures.faults.append(
                    f"{guest.name} was given {card} in slot {slot} at version {version}, and the "
                    f"log has {drawn.get(version)}"
                )


def cards_answered(guest: Guest) -> Iterator[tuple[int, int, str]]:
    """(version, slot, card) of all that the guest's draws were answered with."""
    for answer in guest.record.changes():
        if answer.method == "deck.draw":
            cards, slots = answer.result["cards"], answer.result["slots"]
            first = answer.result["version"] - len(cards) + 1
            for offset, (slot, card) in enumerate(zip(slots, cards, strict=True)):
                yield first + offset, slot, card
