"""Core plans: short schedules of few kinds of commands and faults, another choice for each seed.

A run that does everything at once mostly does the same. So each seed takes a random part of the
commands and faults, and few of each (swarm testing, Groce et al. 2012): what is left out makes what
is taken happen more often, close together, and at states that a full mixture rarely reaches.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.simulation.plan import FAULTS, NODES, SEPARATE_MARKS, Plan, Step

KIND = "core"
ACTORS = ("Ada", "Bob", "Cleo")

RESTORED = 0.2
"""The part of the plans with separate marks that have one restore more."""

COMMANDS = {
    "draw": 8,
    "draw_random": 2,
    "deal": 3,
    "shuffle": 6,
    "round_open": 3,
    "round_close": 2,
    "burn": 1,
    "cut": 1,
    "play": 4,
    "discard": 2,
    "give": 3,
    "show": 3,
    "pass": 2,
    "take_back": 2,
    "return_hand": 2,
    "pile_draw": 1,
    "pile_move": 2,
    "pile_shuffle": 1,
    "note": 6,
    "twice": 5,
    "other_content": 1,
    "expect": 3,
    "leave": 2,
    "join": 3,
    "vacate": 1,
    "move_seat": 1,
    "transfer_host": 1,
    "close_table": 0.7,
    "open_table": 1,
    "follow": 4,
    "unfollow": 2,
    "snapshot": 1,
    "checkpoint": 1,
    "feed": 2,
}
"""Weights of the actors' commands."""

CORE_FAULTS = {
    what: weight for what, weight in FAULTS.items() if what not in ("cut", "half_open", "deaf")
} | {"block": 1, "drain": 1, "archive": 1.5, "restore": 2, "crash": 4, "step_clock": 1.5}
"""Weights of faults and of what operators do."""


TURNS_EVERY, TURNS = 25, 8
"""Of so many plans the one with this remainder is one of turns."""


def make_core_plan(seed: int) -> Plan:
    """The core plan of a seed."""
    if seed % TURNS_EVERY == TURNS:
        return _plan_of_turns(seed)
    random = Random(f"core plan {seed}")
    length = random.choice((0.1, 0.3, 1.0, 2.0))
    nodes = random.choice((1, 2))
    settings: dict[str, Any] = {
        "kind": KIND,
        "length": length,
        "nodes": nodes,
        "commit": random.choice(("thread", "loop", "auto")),
        "idle_tables": random.choice((0, 1, 100, 100)),
        "stage": random.choice(("none", "seated", "round", "dealt", "dealt", "dealt")),
        "entropy": random.choice(("house", "house", "house", "players")),
        "wait_ms": random.choice((100, 300, 1_500)),
        "cards": random.choice((4, 6)),
        "seats": random.choice((1, 2, 3)),
        "hint_loss": random.choice((0.0, 0.3, 1.0)),
        "chunk": random.choice((1, 3, 64)),
        "lost_calls": random.choice((0.0, 0.0, 0.1)),
        "feed": random.random() < 0.3,
        "bundle": random.random() < 0.03,
        "fold": random.random() < 0.4,
        "row_lost": Random(f"row lost {seed}").random() < 0.05,
        "head_lost": Random(f"head lost {seed}").random() < 0.05,
    }
    marks = Random(f"marks {seed}")
    if nodes == 2 and marks.random() < SEPARATE_MARKS:
        settings["separate_marks"] = True
    actors = ACTORS[: settings["seats"]]
    steps = [Step(0.0, name, "follow", random.getrandbits(30)) for name in actors]
    steps = [step for step in steps if random.random() < 0.7]
    if settings["stage"] == "none":
        steps.append(Step(0.001, "Ada", "open_table", random.getrandbits(30)))
        steps += [Step(0.02, name, "join", random.getrandbits(30)) for name in actors[1:]]
    steps += _commands(random, length, actors)
    steps += _faults(random, length, actors, NODES[:nodes])
    if "separate_marks" in settings and marks.random() < RESTORED:
        at = round(marks.uniform(0.0, length), 4)
        steps.append(Step(at, "database", "restore", marks.getrandbits(30)))
    return Plan(seed, settings, tuple(sorted(steps)))


def _plan_of_turns(seed: int) -> Plan:
    """Two nodes serve one table in turn and project each other's rounds, which end by a crash.

    Now and then a read model is locked, so that a node dies before it has projected a close.
    """
    random = Random(f"turns {seed}")
    settings: dict[str, Any] = {
        "kind": KIND,
        "length": 0.0,
        "nodes": 2,
        "commit": random.choice(("thread", "loop", "auto")),
        "idle_tables": 100,
        "stage": random.choice(("round", "dealt")),
        "entropy": "house",
        "wait_ms": 300,
        "cards": random.choice((4, 6)),
        "seats": random.choice((1, 2)),
        "hint_loss": random.choice((0.0, 0.3, 1.0)),
        "chunk": random.choice((1, 3, 64)),
        "lost_calls": 0.0,
        "feed": random.random() < 0.3,
        "bundle": random.random() < 0.1,
        "fold": True,
    }
    steps: list[Step] = []
    at = 0.05

    def add(who: str, what: str, *, lasting: int | None = None) -> None:
        """Add a step; `lasting` 0 to 4 is how long a fault lasts, see `seconds_of`."""
        number = random.getrandbits(30)
        number = number if lasting is None else number - number % 5 + lasting
        steps.append(Step(round(at, 4), who, what, number))

    for _ in range(random.choice((2, 3, 5))):
        node = random.choice(NODES)
        add(node, "turn")
        for what in ("round_close", "round_open", "shuffle", *["draw"] * random.choice((0, 1, 3))):
            at += 0.1
            add(ACTORS[0], what)
        at += random.choice((0.1, 0.6, 3.0))
        if random.random() < 0.5:
            add("database", "lock_models", lasting=2)
            at += 0.1
            add(ACTORS[0], "round_close")
            at += 0.1
            add(node, "crash", lasting=random.choice((None, 4)))
            at += random.choice((0.1, 3.0, 15.0))
    add(random.choice(NODES), "turn")
    settings["length"] = at
    return Plan(seed, settings, tuple(sorted(steps)))


def _commands(random: Random, length: float, actors: tuple[str, ...]) -> list[Step]:
    taken = _part(COMMANDS, random)
    names, weights = zip(*taken.items(), strict=True)
    steps = []
    at, who = 0.0, actors[0]
    for _ in range(random.choice((3, 5, 8, 12, 18))):
        when = random.random()
        if when < 0.5:
            at = random.uniform(0.0, length)
        elif when < 0.7:
            at += random.random() * 0.005
        if when < 0.8:  # otherwise at the same time as the one before, by the same actor
            who = random.choice(actors)
        what = random.choices(names, weights)[0]
        steps.append(Step(round(at, 4), who, what, random.getrandbits(30)))
    return steps


def _faults(
    random: Random, length: float, actors: tuple[str, ...], nodes: tuple[str, ...]
) -> list[Step]:
    taken = _part(CORE_FAULTS, random)
    names, weights = zip(*taken.items(), strict=True)
    steps = []
    for _ in range(random.choice((0, 1, 1, 2, 3, 4))):
        what = random.choices(names, weights)[0]
        at = round(random.uniform(0.0, length), 4)
        whom = "database"
        if what in ("crash", "power_off", "drain", "step_clock"):
            whom = random.choice(nodes)
        elif what in ("freeze", "block"):
            whom = random.choice((*nodes, *actors))
        steps.append(Step(at, whom, what, random.getrandbits(30)))
    return steps


def _part(weights: dict[str, float], random: Random) -> dict[str, float]:
    """A random part of the names with their weights, at least one."""
    share = random.choice((0.15, 0.4, 1.0))
    taken = {name: weight for name, weight in weights.items() if random.random() < share}
    if not taken:
        name = random.choice(list(weights))
        taken = {name: weights[name]}
    return taken
