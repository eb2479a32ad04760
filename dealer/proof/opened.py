"""Opened parts: what people write, to which a leaf commits, so that a person can be forgotten.

    commit = H(T("opened") ‖ lp(table, be64(version), salt, JCS(part)))

`table` is the table's id of 16 bytes, `salt` 32 random bytes, others for each event. `part` are the
members of the event that its class names in `OPENED`; all other members are in the leaf. Part and
salt, the *opening*, travel beside the leaf. Without them the part is unknown, and no guess can be
confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from dealer.game.events import OPENED_TYPES, SERVER_NOTES, TYPES
from dealer.proof.canonical import dump
from dealer.proof.concatenation import T, be64, lp

SALT_BYTES = 32

Members = dict[str, Any]


def separate(type: str, members: Mapping[str, Any]) -> tuple[Members, Members]:
    """The public members of a leaf and its opened part, which is empty if it has none."""
    opened = () if members.get("kind") in SERVER_NOTES else TYPES[type].OPENED
    part = {name: members[name] for name in opened if name in members}
    return {name: value for name, value in members.items() if name not in part}, part


def has_part(leaf: Mapping[str, Any]) -> bool:
    """Whether the event of a leaf has an opened part."""
    return "commit" in leaf and leaf["type"] in OPENED_TYPES


def opened_commitment(*, table: bytes, version: int, salt: bytes, part: Mapping[str, Any]) -> bytes:
    """The commitment of the event at `version` to its opened part, 32 bytes."""
    parts = lp(table, be64(version), salt, dump(part).encode())
    return sha256(T("opened") + parts).digest()


def opening(part: Mapping[str, Any], salt: bytes) -> str:
    """The opening as JSON text, as it is beside an event of the socket and of the feed."""
    return f'{{"part":{dump(part)},"salt":"{salt.hex()}"}}'
