"""Plans: what clients, operators and faults do in one run, and when; made from a seed.

A plan is a list of steps, so that it can be printed in words, saved, and made smaller. `number` is
a random number with which the step chooses what the state of that moment allows: a card, a seat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

from tests.simulation.grammar import (
    COMMANDS,
    FAULTS,
    LATEST_COMMANDS,
    MORE_COMMANDS,
    MORE_FAULTS,
    WORDS,
)
from tests.simulation.swarm import subset

CLIENTS = ("Ada", "Bob", "Cleo", "Dan")
NODES = ("north", "south")


class Step(NamedTuple):
    """`at` is in seconds from the start; `who` a client, a node, or the database."""

    at: float
    who: str
    what: str
    number: int


@dataclass(frozen=True)
class Plan:
    """The steps of one run, and the `settings` of its nodes; `seed` decides every delay."""

    seed: int
    settings: dict[str, Any]
    steps: tuple[Step, ...]

    def without(self, removed: set[int]) -> Plan:
        """The plan without the steps at these places."""
        kept = (step for place, step in enumerate(self.steps) if place not in removed)
        return replace(self, steps=tuple(kept))

    def to_json(self) -> str:
        return json.dumps(
            {"seed": self.seed, "settings": self.settings, "steps": [list(s) for s in self.steps]}
        )

    @classmethod
    def from_json(cls, text: str) -> Plan:
        found = json.loads(text)
        steps = tuple(Step(*each) for each in found["steps"])
        return cls(found["seed"], found["settings"], steps)

    def words(self) -> list[str]:
        """The plan as sentences."""
        lines = [f"seed {self.seed}: " + ", ".join(f"{k} {v}" for k, v in self.settings.items())]
        return [*lines, *(f"  {s.at:7.3f} s  {s.who}: {words_of(s)}" for s in self.steps)]


def seconds_of(step: Step) -> float:
    """How long a fault lasts: mostly short, sometimes longer than every timeout."""
    return (0.05, 0.3, 1.0, 3.0, 8.0)[step.number % 5] * (1 + step.number % 97 / 97)


def milliseconds_of(step: Step) -> int:
    return (-3_600_000, -3_600_000, -5_000, 50, 5_000, 3_600_000)[step.number % 6]


def words_of(step: Step) -> str:
    text = WORDS.get(step.what, step.what.replace("_", " "))
    return text.format(seconds=seconds_of(step), milliseconds=milliseconds_of(step))


EXCHANGE_EVERY = 10
"""Of so many plans one is run twice, the second time with two cards exchanged."""

FLOOD_PART = 0.08
"""The part of the plans in which addresses have rates, and one of them floods the nodes."""

DRAINS_EVERY, DRAINS = 50, 46
"""Of so many plans the one with this remainder has no faults but nodes that are drained, with a few
players, whose connections end and go to the other node."""

SEPARATE_MARKS = 0.3
"""The part of the plans in which each node has a folder of marks of its own."""

SWARM_EVERY = 3
"""Of so many plans one has only some of the commands and faults, with other weights."""


def make_plan(seed: int) -> Plan:
    """The plan of a seed."""
    random, more = Random(f"plan {seed}"), Random(f"more {seed}")
    length = random.choice((3.0, 6.0, 10.0))
    settings = {
        "length": length,
        "commit": random.choice(("thread", "loop", "auto")),
        "chunk": random.choice((3, 64)),
        "resume": random.choice((6, 10_000, 10_000)),
        "buffer": random.choice((3_000, 65_536)),
        "idle_tables": random.choice((0, 1, 100)),
        "preset": random.choice(("free", "shared", "shared")),
        "entropy": random.choice(("players", "house")),
        "wait_ms": random.choice((300, 1_500, 10_000)),
        "cards": random.choice((4, 6, 6, 12)),
        "hint_loss": random.choice((0.0, 0.3, 1.0)),
    }
    if seed % EXCHANGE_EVERY == 7:
        settings |= {"cards": 12, "exchange": True}
    commands, faults = COMMANDS, FAULTS
    if seed % SWARM_EVERY == 2:
        settings["length"] = length = more.choice((3.0, 10.0, 30.0))
        settings["answer"] = more.choice((0.3, 2.0))
        commands = subset(COMMANDS | MORE_COMMANDS, more, keep=0.5)
        faults = subset(FAULTS | MORE_FAULTS, more, keep=0.3)
    if more.random() < 0.15:
        settings["webhook"] = more.choice(("hmac", "ed25519"))
    if "exchange" not in settings and Random(f"flood {seed}").random() < FLOOD_PART:
        settings["flood"] = True
    if Random(f"marks {seed}").random() < SEPARATE_MARKS:
        settings["separate_marks"] = True
    steps = [Step(0.0, "Ada", "open_table", 0)]
    steps += [Step(0.02 * n, name, "join", 0) for n, name in enumerate(CLIENTS, 1)]
    steps.append(Step(0.3, "Ada", "round_open", random.getrandbits(30)))
    names, weights = list(commands), list(commands.values())
    for _ in range(random.randrange(15, 60)):
        at = round(random.uniform(0.3, length), 4)
        what = random.choices(names, weights)[0]
        steps.append(Step(at, random.choice(CLIENTS), what, random.getrandbits(30)))
        while random.random() < 0.25:  # at almost the same time
            other = random.choices(names, weights)[0]
            after = round(at + random.random() * 0.01, 4)
            steps.append(Step(after, random.choice(CLIENTS), other, random.getrandbits(30)))
    drains = seed % DRAINS_EVERY == DRAINS
    names, weights = list(faults), list(faults.values())
    if drains:
        names, weights = ["drain"], [1]
    for _ in range(random.choice((1, 2, 3) if drains else (0, 1, 2, 3, 5, 8))):
        what = random.choices(names, weights)[0]
        steps.append(_fault(what, length, random))
    if seed % SWARM_EVERY != 2 and not drains:
        steps += _more_steps(length, more)
    steps += _latest_steps(seed, length)
    return Plan(seed, settings, tuple(sorted(steps)))


def _more_steps(length: float, more: Random) -> Iterator[Step]:
    """Steps beside those of the plan: their numbers leave those of the others as they are."""
    for what in MORE_COMMANDS:
        while more.random() < 0.1:
            at = round(more.uniform(0.3, length), 4)
            yield Step(at, more.choice(CLIENTS), what, more.getrandbits(30))
    for what in MORE_FAULTS:
        while more.random() < 0.2:
            yield _fault(what, length, more)


def _latest_steps(seed: int, length: float) -> Iterator[Step]:
    for what, part in LATEST_COMMANDS.items():
        random = Random(f"{what} {seed}")
        while random.random() < part:
            at = round(random.uniform(0.3, length), 4)
            yield Step(at, random.choice(CLIENTS), what, random.getrandbits(30))


def _fault(what: str, length: float, random: Random) -> Step:
    at = round(random.uniform(0.1, length), 4)
    return Step(at, _whom(what, random), what, random.getrandbits(30))


def _whom(fault: str, random: Random) -> str:
    if fault in ("cut", "half_open", "deaf"):
        return random.choice(CLIENTS)
    if fault in ("crash", "crash_at", "power_off", "drain", "step_clock"):
        return random.choice(NODES)
    if fault in ("freeze", "block"):
        return random.choice((*NODES, *CLIENTS))
    return "database"
