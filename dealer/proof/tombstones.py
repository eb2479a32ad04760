"""Tombstones: lines of a bundle in place of the leaves that named a person who was forgotten.

`{"tombstone":{"at":…,"hash":…,"public":{"seat":3},"type":"SeatTaken","version":4}}` has the hash of
the leaf, so that every root and signature stays valid, and the members of the leaf that name no
person. These are the house's word: no hash proves them without the rest of the leaf.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dealer.game.mentions import Mentions
from dealer.game.state import PROGRAM, SEAT_MOVE, SEAT_OFFER, TAKE_BACK
from dealer.proof.bundle import checkpoint
from dealer.proof.canonical import dump
from dealer.proof.tree import leaf_hash

FORGOTTEN = "\u2014"
"""The name with which the events of a tombstone's player are shown."""

_LEAF = b'{"at":'
_KEPT = {"SeatTaken": ("seat",), "SeatVacated": ("by", "seat"), "NoteAdded": ("seat",)}
_SHOWN: dict[str, dict[str, str]] = {
    "SeatTaken": {"name": FORGOTTEN},
    "SeatVacated": {"reason": ""},
    "NoteAdded": {"kind": "forgotten", "text": ""},
}
# The server writes these: the state of the table follows from three of them.
_KINDS_KEPT = (TAKE_BACK, SEAT_MOVE, SEAT_OFFER, PROGRAM)


class Forgotten(NamedTuple):
    """A bundle's lines with tombstones; `versions` are those of the leaves replaced now.

    `standing` has the places where a name still stands, see `Mentions.places`.
    """

    lines: list[bytes]
    versions: list[int]
    standing: dict[str, list[int]]


def read_leaf(line: str | bytes) -> dict[str, Any]:
    """The members of a leaf or, with `FORGOTTEN` as the player's name, of a tombstone."""
    members: dict[str, Any] = json.loads(line)
    if "tombstone" not in members:
        return members
    members = members["tombstone"]
    return members | {"v": 1, "public": members["public"] | _SHOWN[members["type"]]}


def forget(lines: Iterable[bytes], who: str) -> Forgotten:
    """Put tombstones in place of the leaves of a verified bundle that name a person.

    `who` is the name with which they took a seat, or a seat's number: then it is everybody who took
    that seat. Tombstones get each SeatTaken with such a name or with the key of one, the notes of
    these players, and every reason or note that contains such a name; their cosignatures, which
    name the key, are removed. Nothing is changed if there is none: then `versions` is empty.
    """
    bundle = list(lines)
    leaves = [json.loads(line) for line in bundle if line.startswith(_LEAF)]
    persons = _Persons(leaves, who)
    versions = set(persons.leaves(leaves))
    changed = []
    for line in bundle:
        if line.startswith(_LEAF):
            leaf = json.loads(line)
            changed.append(_tombstone(leaf, line) if leaf["version"] in versions else line)
        elif line.startswith(b'{"checkpoint":'):
            changed.append(checkpoint(persons.without(json.loads(line)["checkpoint"])).encode())
        else:
            changed.append(line)
    return Forgotten(changed, sorted(versions), persons.names.places(changed))


def _tombstone(leaf: dict[str, Any], line: bytes) -> bytes:
    public = {name: leaf["public"][name] for name in _KEPT[leaf["type"]]}
    stone = {name: leaf[name] for name in ("at", "type", "version")}
    return dump({"tombstone": {**stone, "hash": leaf_hash(line).hex(), "public": public}}).encode()


class _Persons:
    """The names and keys of those to be forgotten."""

    def __init__(self, leaves: list[dict[str, Any]], who: str) -> None:
        seated = [leaf["public"] for leaf in leaves if leaf["type"] == "SeatTaken"]
        seat = int(who) if re.fullmatch("[1-9][0-9]{0,9}", who) else None
        asked = Mentions([who])
        named = Mentions(
            one["name"] for one in seated if one["name"] in asked or seat == one["seat"]
        )
        self._keys = {one["key"] for one in seated if one["name"] in named and "key" in one}
        self.names = Mentions(one["name"] for one in seated if self._is(one, named))

    def _is(self, seated: dict[str, Any], names: Mentions) -> bool:
        return seated["name"] in names or seated.get("key") in self._keys

    def leaves(self, leaves: list[dict[str, Any]]) -> Iterator[int]:
        """The versions of the leaves that name or quote them."""
        seats: set[int] = set()
        for leaf in leaves:
            public, type_ = leaf["public"], leaf["type"]
            if type_ == "SeatTaken" and self._is(public, self.names):
                seats.add(public["seat"])
                yield leaf["version"]
            elif type_ in ("SeatVacated", "NoteAdded"):
                text = f"{public.get('kind')} {public.get('text', public.get('reason'))}"
                theirs = public["seat"] in seats and text != "None "
                if public.get("kind") not in _KINDS_KEPT and (theirs or self.names.within(text)):
                    yield leaf["version"]
            if type_ in ("SeatLeft", "SeatVacated"):
                seats.discard(public["seat"])

    def without(self, note: str) -> str:
        """The note without their cosignatures."""
        theirs = tuple(f"\u2014 player/{key} " for key in self._keys)
        return "\n".join(line for line in note.split("\n") if not line.startswith(theirs))
