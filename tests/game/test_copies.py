"""A copied state is equal to the original and shares nothing that `evolve` changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any

from dealer.game.state import Table, copy_table, evolve
from tests.projector.random_games import Game, random_step

IMMUTABLE = (int, str, bytes, type(None), bool)


def mutable_parts(value: Any, path: str = "table") -> Iterator[tuple[str, Any]]:
    """Every object inside a state that can be changed, with its path; the rules never change."""
    if isinstance(value, IMMUTABLE) or path.endswith(".rules"):
        return
    if not isinstance(value, tuple):
        yield path, value
    if isinstance(value, dict):
        for key, one in value.items():
            yield from mutable_parts(one, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple, set)):
        for number, one in enumerate(value):
            yield from mutable_parts(one, f"{path}[{number}]")
    elif is_dataclass(value):
        for field in fields(value):
            yield from mutable_parts(getattr(value, field.name), f"{path}.{field.name}")


def test_a_copy_is_equal_and_shares_nothing() -> None:
    seen: set[str] = set()
    for seed in range(4):
        chance, game = Random(seed), Game().sit("Ada", "Bob", "Cleo")
        for _ in range(150):
            random_step(game, chance.randrange(10_000))
        table, kept = Table(), []
        for event, at in game.events:
            copied = copy_table(table)
            assert copied == table
            theirs = {id(one) for _, one in mutable_parts(table)}
            parts = list(mutable_parts(copied))
            assert [path for path, one in parts if id(one) in theirs] == []
            seen |= {path.partition("[")[0] for path, _ in parts}
            kept.append((copied, repr(copied)))
            evolve(table, event, at)
        assert all(repr(copied) == text for copied, text in kept)
    assert {"table.round.moves.last.cards", "table.round.shuffle.nonces"} <= seen
    assert {"table.round.moves.passed", "table.round.known", "table.seats"} <= seen
