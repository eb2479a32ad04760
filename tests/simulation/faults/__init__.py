"""Planted faults: each breaks one rule of the program, for as long as the block runs.

A fault is a function that gives what it replaces: (object, name, function of the original).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple


class Replacement(NamedTuple):
    """`make` is given what is at `owner.name`, and returns what takes its place."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


FAULTS: dict[str, Callable[[], list[Replacement]]] = {}


def fault(work: Callable[[], list[Replacement]]) -> Callable[[], list[Replacement]]:
    """Register a fault under the name of the function."""
    FAULTS[work.__name__] = work
    return work


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run the block with a fault in the program."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for owner, attribute, make in FAULTS[name]():
            original = owner.__dict__[attribute]
            before.append((owner, attribute, original))
            setattr(owner, attribute, make(original))
        yield
    finally:
        for owner, attribute, original in reversed(before):
            setattr(owner, attribute, original)


def load() -> None:
    """Register all faults."""
    for module in ("gateway", "log", "service", "views", "webhooks"):
        import_module(f"tests.simulation.faults.{module}")
