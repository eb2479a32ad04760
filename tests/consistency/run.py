"""One run: real servers, clients of both languages, faults, and the history of all operations.

    python tests/consistency/run.py FOLDER --setup sqlite --operations 5000 --seed 7

The folder gets `run.json` (set-up, seed, each fault with its time), `history.jsonl`, and of each
table its bundle and the heads that clients saw. `check.py` runs many and asks the checkers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos.feeds import add_key, add_webhook
from tests.consistency.clients import Clients
from tests.consistency.setups import SETUPS
from tests.webhooks.receiver import Receiver


@dataclass
class Figures:
    """What happened in a run; `faults` are kinds of faults with how often each was injected.

    `cheated` counts the clients of the libraries that reported to a player that the house cheats,
    `subscriptions` the requests to watch by how they were answered.
    """

    operations: int = 0
    unknown: int = 0
    refused: int = 0
    repeated: int = 0
    cheated: int = 0
    heads: int = 0
    tables: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    subscriptions: dict[str, int] = field(default_factory=dict)
    times: list[tuple[float, str]] = field(default_factory=list)
    seconds: float = 0.0


async def one_run(
    folder: Path, *, setup: str, operations: int, seed: int, lie: str = ""
) -> Figures:
    """Run, and write the history with everything that a checker needs into `folder`."""
    chance, figures, begun = random.Random(seed), Figures(), monotonic()
    work = folder / "server"
    await asyncio.to_thread(work.mkdir, parents=True)
    async with SETUPS[setup](work, chance, lie) as place, Receiver() as receiver:
        key = await add_key(place.server.address)
        await add_webhook(place.server, receiver.url)
        clients = Clients(place.port, operations=operations * 3 // 4, seed=seed)
        await clients.sit_down()
        url = f"ws://127.0.0.1:{place.port()}/ws"
        house, seats = await clients.python_client(url)
        process = await clients.javascript_client(url, operations // 4)
        await clients.begin()
        clients.read_events(key, receiver)
        playing = asyncio.gather(
            clients.play(), clients.play_python(seats), clients.play_javascript(process)
        )
        injected: Counter[str] = Counter()
        due = chance.sample(list(place.faults), len(place.faults))  # each kind once, then any
        while not playing.done():
            await asyncio.wait((playing,), timeout=chance.uniform(0.2, 1.0))
            if not playing.done():
                name = due.pop() if due else chance.choice(list(place.faults))
                figures.times.append((round(monotonic() - begun, 3), name))
                injected[name] += 1
                await place.faults[name]()
        await playing
        await clients.finish()
        await house.close()
        clients.history.write(folder)
        for table in clients.tables:
            (folder / f"{table}.bundle.jsonl").write_bytes(await place.bundle(table))
    ops = clients.history.operations
    commands = Counter(one.cmd for one in ops if one.cmd)
    figures.operations, figures.tables = len(ops), len(clients.tables)
    figures.unknown = sum(one.end is None for one in ops)
    figures.refused = sum("refused" in (one.out or ()) for one in ops)
    figures.repeated = sum(number > 1 for number in commands.values())
    figures.cheated = clients.cheated
    figures.heads = sum(map(len, clients.history.heads.values()))
    figures.faults, figures.subscriptions = dict(injected), dict(clients.subscriptions)
    figures.seconds = round(monotonic() - begun, 1)
    described = {"setup": setup, "seed": seed, "lie": lie, "keys": clients.keys} | asdict(figures)
    (folder / "run.json").write_text(json.dumps(described, indent=1) + "\n")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--setup", choices=SETUPS, default="sqlite")
    parser.add_argument("--operations", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lie", default="")
    given = parser.parse_args()
    print(
        asyncio.run(
            one_run(given.folder, **{n: v for n, v in vars(given).items() if n != "folder"})
        )
    )


if __name__ == "__main__":
    main()
