"""Forgetting: which openings of an archived bundle name a person, and the bundle without them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from dealer.game.mentions import Mentions
from dealer.proof.bundle import OPENED, read_leaves
from dealer.proof.opened import has_part


class Forgotten(NamedTuple):
    """A bundle's lines without openings; `versions` are those of the openings taken away now.

    `standing` has the places where a name still is, see `Mentions.places`.
    """

    lines: list[bytes]
    versions: list[int]
    standing: dict[str, list[int]]


def forget(lines: list[bytes], who: str) -> Forgotten:
    """Take away the openings of a verified bundle that name a person; nothing else is changed.

    `who` is the name with which they took a seat, or a seat's number: then it is everybody who took
    that seat. These are the openings of each SeatTaken with such a name or with the key of one, of
    the notes of these players and the reasons for vacating their seats, and each name of the table,
    reason or note that contains such a name. If there is none, `versions` is empty.
    """
    leaves = list(read_leaves(lines))
    persons = _Persons(leaves, who)
    versions = set(persons.versions(leaves))
    kept = [
        line
        for line in lines
        if not line.startswith(OPENED) or json.loads(line)["version"] not in versions
    ]
    return Forgotten(kept, sorted(versions), persons.names.places(kept))


class _Persons:
    """The names and keys of those to be forgotten."""

    def __init__(self, leaves: list[dict[str, Any]], who: str) -> None:
        taken = [leaf["public"] for leaf in leaves if leaf["type"] == "SeatTaken"]
        seated = [one for one in taken if "name" in one]  # the others are withheld already
        seat = int(who) if re.fullmatch("[1-9][0-9]{0,9}", who) else None
        asked = Mentions([who])
        named = Mentions(
            one["name"] for one in seated if one["name"] in asked or seat == one["seat"]
        )
        self._keys = {one["key"] for one in seated if one["name"] in named and "key" in one}
        self.names = Mentions(one["name"] for one in seated if self._is(one, named))

    def _is(self, seated: dict[str, Any], names: Mentions) -> bool:
        return seated.get("name") in names or seated.get("key") in self._keys

    def versions(self, leaves: list[dict[str, Any]]) -> Iterator[int]:
        """The versions of the opened parts that name or quote them."""
        seats: set[int] = set()
        for leaf in leaves:
            public, type_ = leaf["public"], leaf["type"]
            if type_ == "SeatTaken" and self._is(public, self.names):
                seats.add(public["seat"])
                yield leaf["version"]
            elif has_part(leaf) and type_ != "SeatTaken":
                text = public.get("text", public.get("reason", public.get("name")))
                theirs = public.get("seat") in seats
                if text is not None and (theirs or self.names.within(text)):
                    yield leaf["version"]
            if type_ in ("SeatLeft", "SeatVacated"):
                seats.discard(public["seat"])
