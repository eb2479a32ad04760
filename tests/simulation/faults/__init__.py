"""Planted faults: each breaks one rule of the program, for as long as the block runs.

A fault is a function that is called in place of one of the program (`fault_of`), or one that gives
what it replaces (`fault`): (object, name, function of the original).
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


def fault_of(owner: Any, name: str) -> Callable[[Any], Any]:
    """Register a function that is called in place of `owner.name`; its first argument is that."""

    def register(work: Any) -> Any:
        def make(original: Any) -> Any:
            return lambda *given, **named: work(original, *given, **named)

        FAULTS[work.__name__] = lambda: [Replacement(owner, name, make)]
        return work

    return register


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
