"""The attackers' process: all attacks from one address for a number of seconds.

    python tests/chaos/attackers.py PORT SECONDS SEED TABLE…
    python tests/chaos/attackers.py --burn SECONDS

The first half of each period runs only the patient attacks, the second half all of them: an
address that floods is soon locked out, which would hide what a patient one can do. The patient
ones share a rate that the server accepts, and obey its retry delays. The process uses at most a
fixed share of one processor; `--burn` uses that share and attacks nothing. Standard output is one
JSON object, the tally of each attack by its name.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos.hostile_bytes import BYTES
from tests.chaos.hostile_client import Attack, Attacker, Closed, Refused, Rejected
from tests.chaos.hostile_pace import Pace, Tally, Throttle
from tests.chaos.hostile_reads import READS
from tests.chaos.hostile_requests import REQUESTS

ADDRESS = "127.0.0.2"
SHARE = 0.4
"""Share of one processor."""

PATIENT_RATE = 90.0
"""Messages a second of all patient attackers together: the sustained rate of one address."""


class Attackers:
    """Runs every attack until `seconds` are over."""

    def __init__(
        self, port: int, honest: list[str], *, seconds: float, seed: int, only: list[str]
    ) -> None:
        self._port = port
        self._honest = honest
        self._seconds = seconds
        self._seed = seed
        self._only = only
        self._pace = Pace(SHARE)
        self._throttle = Throttle(PATIENT_RATE)
        self._own: list[tuple[str, str]] = []
        self._begun = time.monotonic()
        self._visit = min(8.0, max(1.0, seconds / 12))
        self._period = min(120.0, seconds / 2)
        self.tallies: dict[str, Tally] = {}

    async def attack(self) -> None:
        workers = []
        for attacks, patient in ((REQUESTS, True), (READS, True), (BYTES, False)):
            for name, (attack, count) in attacks.items():
                if self._only and name not in self._only:
                    continue
                tally = self.tallies[name] = Tally()
                for number in range(count):
                    chance = random.Random(f"{self._seed} {name} {number}")
                    me = Attacker(
                        self._port,
                        ADDRESS,
                        chance,
                        tally,
                        self._pace,
                        self._honest,
                        self._own,
                        self._throttle if patient else None,
                    )
                    workers.append(self._work(attack, me, patient=patient))
        await asyncio.gather(*workers)

    async def _work(self, attack: Attack, me: Attacker, *, patient: bool) -> None:
        end = self._begun + self._seconds
        while (now := time.monotonic()) < end:
            if not patient and (now - self._begun) % self._period < self._period / 2:
                await asyncio.sleep(0.1)
                continue
            me.tally.visits += 1
            me.until = min(end, now + self._visit)
            ended = "done"
            try:
                async with asyncio.timeout(self._visit + 10):
                    await attack(me)
            except (Closed, Rejected, Refused) as error:
                ended = str(error)
            except (OSError, asyncio.IncompleteReadError) as error:
                ended = type(error).__name__
            me.tally.ended[ended] += 1
            await asyncio.sleep(me.chance.uniform(0.01, 0.2))


def burn(seconds: float) -> None:
    """Use as much CPU time as the attackers may."""
    end, slice_ = time.monotonic() + seconds, 0.01
    while (now := time.monotonic()) < end:
        while time.monotonic() < now + slice_ * SHARE:
            pass
        time.sleep(slice_ * (1 - SHARE))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--burn", type=float, metavar="SECONDS")
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[], help="names of attacks; all, if not given")
    options = parser.parse_args()
    if options.burn is not None:
        burn(options.burn)
        return 0
    port, seconds, seed = options.numbers
    attackers = Attackers(port, options.tables, seconds=seconds, seed=seed, only=options.only)
    with suppress(KeyboardInterrupt):
        asyncio.run(attackers.attack())
    print(json.dumps({name: vars(tally) for name, tally in attackers.tallies.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
