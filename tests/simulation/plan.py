"""Plans: what clients, operators and faults do in one run, and when; made from a seed.

A plan is a list of steps, so that it can be printed in words, saved, and made smaller. `number` is
a random number with which the step chooses what the state of that moment allows: a card, a seat.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

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


COMMANDS = {
    "draw": 10,
    "draw_random": 2,
    "deal": 4,
    "shuffle": 7,
    "round_open": 6,
    "round_close": 3,
    "burn": 1,
    "cut": 1,
    "play": 4,
    "discard": 3,
    "give": 3,
    "show": 2,
    "pass": 2,
    "take_back": 2,
    "return_hand": 2,
    "return_pile": 1,
    "pile_draw": 2,
    "pile_move": 2,
    "pile_turn": 1,
    "pile_shuffle": 1,
    "note": 5,
    "twice": 4,
    "expect": 3,
    "presence": 1,
    "list": 1,
    "bundle": 1,
    "leave": 2,
    "join": 4,
    "watch": 1,
    "vacate": 1,
    "transfer_host": 1,
    "close_table": 0.7,
    "open_table": 0.7,
}
"""Weights of the clients' commands."""

FAULTS = {
    "cut": 6,
    "half_open": 3,
    "block": 3,
    "deaf": 2,
    "crash": 3,
    "power_off": 2,
    "drain": 2,
    "freeze": 3,
    "step_clock": 3,
    "db_refuse": 2,
    "db_full": 1,
    "db_fail": 2,
    "db_unknown": 3,
    "db_lock": 1,
    "db_slow": 1,
    "lock_table": 3,
    "no_hints": 2,
    "disable": 1,
    "enable": 1,
    "archive": 1,
    "rotate": 0.6,
    "all_power_off": 1,
    "restore": 0.7,
}
"""Weights of faults and of what operators do."""

WORDS = {
    "cut": "the connections are cut",
    "half_open": "a connection is half open: one end hears nothing more",
    "block": "a path of the network is blocked for {seconds:.1f} s",
    "deaf": "reads nothing for {seconds:.1f} s",
    "crash": "is killed, and starts again after {seconds:.1f} s",
    "power_off": "loses its power, and starts again after {seconds:.1f} s",
    "drain": "is stopped by its operator and starts again",
    "freeze": "stands still for {seconds:.1f} s",
    "step_clock": "the wall clock is stepped by {milliseconds} ms",
    "db_refuse": "the database cannot be reached for {seconds:.1f} s",
    "db_full": "the disk is full for {seconds:.1f} s",
    "db_fail": "the next commits fail",
    "db_unknown": "the outcome of the next commits is unknown",
    "db_lock": "another program locks the database for {seconds:.1f} s",
    "db_slow": "the disk is slow",
    "lock_table": "another transaction locks a table for {seconds:.1f} s",
    "no_hints": "all hints between the nodes are lost from now on",
    "disable": "the operator disables a table or the house",
    "enable": "the operator enables everything",
    "archive": "the operator archives the closed tables",
    "rotate": "the operator rotates the house key",
    "all_power_off": "all machines lose their power, and what was not synced is lost",
    "restore": "the operator restores an earlier copy of the database",
    "twice": "sends a note twice under one id",
    "expect": "sends a note that expects the version it sees",
}


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


def make_plan(seed: int) -> Plan:
    """The plan of a seed."""
    random = Random(f"plan {seed}")
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
    steps = [Step(0.0, "Ada", "open_table", 0)]
    steps += [Step(0.02 * n, name, "join", 0) for n, name in enumerate(CLIENTS, 1)]
    steps.append(Step(0.3, "Ada", "round_open", random.getrandbits(30)))
    commands, weights = zip(*COMMANDS.items(), strict=True)
    for _ in range(random.randrange(15, 60)):
        at = round(random.uniform(0.3, length), 4)
        what = random.choices(commands, weights)[0]
        steps.append(Step(at, random.choice(CLIENTS), what, random.getrandbits(30)))
        while random.random() < 0.25:  # at almost the same time
            other = random.choices(commands, weights)[0]
            after = round(at + random.random() * 0.01, 4)
            steps.append(Step(after, random.choice(CLIENTS), other, random.getrandbits(30)))
    faults, weights = zip(*FAULTS.items(), strict=True)
    for _ in range(random.choice((0, 1, 2, 3, 5, 8))):
        what = random.choices(faults, weights)[0]
        at = round(random.uniform(0.1, length), 4)
        steps.append(Step(at, _whom(what, random), what, random.getrandbits(30)))
    return Plan(seed, settings, tuple(sorted(steps)))


def _whom(fault: str, random: Random) -> str:
    if fault in ("cut", "half_open", "deaf"):
        return random.choice(CLIENTS)
    if fault in ("crash", "power_off", "drain", "step_clock"):
        return random.choice(NODES)
    if fault in ("freeze", "block"):
        return random.choice((*NODES, *CLIENTS))
    return "database"
