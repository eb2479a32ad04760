"""A game that goes on while its house is killed again and again; nothing may be lost or doubled.

    python tests/whole/kills.py 50

Four players shuffle, deal, draw and discard, all at the same time where they may. At random
instants the process of the house gets SIGKILL and is started again, sometimes only to be killed
while it starts. The clients come back by themselves. In the end the log is compared with every
client's own record of what it was told and of what it was answered.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.client import RemoteTable
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.whole.house import PATIENT, HouseProcess
from tests.whole.party import Guest, Party, party
from tests.whole.record import Answer
from tests.whole.truth import Leaf, faces, leaves

INSTANT = 0.7
"""A process is killed at some instant within so many seconds after it opened, or was started."""

WHILE_STARTING = 0.2
"""How often a process is killed before it has opened."""


@dataclass
class Figures:
    """What came of it; all of `faults` are promises broken, one sentence each."""

    kills: int = 0
    of_them_while_starting: int = 0
    restarts: int = 0
    rounds: int = 0
    shuffles: int = 0
    voided: int = 0
    seats_left_out: int = 0
    events: int = 0
    acknowledged: int = 0
    resumes: int = 0
    told_again: int = 0
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


async def play_while_killed(folder: Path, *, kills: int, seed: int) -> Figures:
    """Play in `folder` until the house was killed that often; `seed` sets the instants."""
    figures = Figures()
    begun = time.monotonic()
    async with HouseProcess(folder) as house, party(house.url, folder=folder / "clients") as guests:
        await guests.sit_down(seats=len(guests.players))
        reading = [asyncio.create_task(versions(guest.table)) for guest in guests.guests]
        enough = asyncio.Event()
        playing = asyncio.create_task(play(guests, enough))
        await kill(house, playing, kills, random.Random(seed), figures)
        enough.set()
        async with asyncio.timeout(PATIENT):
            await playing
        await guests.all_see(lambda table: table.closed)
        told = [await one for one in reading]
        bundle = read(await house.bundle(guests.id))
        saved = [note for guest in guests.guests for note in guest.table.checkpoints]
        key = guests.tables[0].key
        await house.close()
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
    return figures


async def kill(
    house: HouseProcess,
    playing: asyncio.Task[None],
    kills: int,
    chance: random.Random,
    figures: Figures,
) -> None:
    """Kill the house at random instants, and open it again each time."""
    while figures.kills < kills:
        if await over(playing, chance.uniform(0, INSTANT)):
            return
        await house.kill()
        figures.kills += 1
        while figures.kills < kills and chance.random() < WHILE_STARTING:
            await house.start()
            await over(playing, chance.uniform(0, INSTANT))
            await house.kill()
            figures.kills += 1
            figures.of_them_while_starting += 1
        await house.open()
        figures.restarts += 1


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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kills", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=None, help="of the instants")
    asked = parser.parse_args()
    seed = secrets.randbelow(2**32) if asked.seed is None else asked.seed
    with tempfile.TemporaryDirectory(prefix="dealer-kills-") as folder:
        figures = asyncio.run(play_while_killed(Path(folder), kills=asked.kills, seed=seed))
    for name, value in (asdict(figures) | {"seed": seed}).items():
        if name != "faults":
            print(f"{name.replace('_', ' '):24}{value:>12}")
    for fault in figures.faults:
        print(f"FAULT: {fault}")
    return 1 if figures.faults else 0


if __name__ == "__main__":
    sys.exit(main())
