"""Example frames, one for each method and notification, recorded from a game."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

Frame = dict[str, Any]


class Example(NamedTuple):
    """A request with its answer, or a notification, which has no answer."""

    frame: Frame | None
    answer: Frame | None


NONE = Example(None, None)


@cache
def examples() -> dict[str, Example]:
    """By name of the method or notification; `refusal` is a refused request."""
    text = (resources.files(__package__) / "examples.jsonl").read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        recorded = json.loads(line)
        found[recorded["name"]] = Example(recorded["frame"], recorded.get("answer"))
    return found
