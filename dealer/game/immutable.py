"""Dataclasses that are immutable to the type checker only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True)
def immutable(kind: type[Kind]) -> type[Kind]:
    """Make `kind` a dataclass with slots that is immutable to the type checker.

    Immutability at run time (`frozen=True`) would make construction four times slower, and every
    draw is a command and an event, every swap of a shuffle an event.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)
