"""The face-down cards of closed rounds, computed from the round's secret and the seals alone.

And the rule by which one player may see a face before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dealer.game.view import Viewer
from dealer.proof.bundle import read_leaves
from dealer.proof.round_keys import RoundKeys, slot_commitment

Leaf = dict[str, Any]


def may_see(viewer: Viewer, seat: int, version: int) -> bool:
    """Whether `viewer` may see what the event at `version` shows to `seat` alone."""
    return viewer is not None and viewer.seat == seat and viewer.taken_at < version


def leaves(bundle: Iterable[bytes]) -> list[Leaf]:
    """The events of a bundle's lines, as parsed JSON, each with what it opens."""
    return list(read_leaves(list(bundle)))


def round_keys(log: list[Leaf]) -> dict[int, RoundKeys]:
    """The keys of each closed round, by round number."""
    table = bytes.fromhex(log[0]["table"])
    return {
        leaf["public"]["round"]: RoundKeys(
            table=table,
            round=leaf["public"]["round"],
            secret=bytes.fromhex(leaf["public"]["secret"]),
        )
        for leaf in log
        if leaf["type"] == "RoundClosed"
    }


def faces(log: list[Leaf]) -> dict[tuple[int, int], str]:
    """The card of each slot of the closed rounds, by (round, slot): the one that opens the seal."""
    table, keys = bytes.fromhex(log[0]["table"]), round_keys(log)
    found: dict[tuple[int, int], str] = {}
    deck: list[str] = []
    for leaf in log:
        public = leaf["public"]
        if leaf["type"] == "RoundOpened":
            deck = public["deck"]
        if leaf["type"] != "DeckSealed" or public["round"] not in keys:
            continue
        number = public["round"]
        for slot, seal in enumerate(public["slots"], public["first"]):
            salt = keys[number].slot_salt(slot)
            (found[number, slot],) = (
                card
                for card in deck
                if slot_commitment(table=table, round=number, slot=slot, salt=salt, card=card)
                == bytes.fromhex(seal)
            )
    return found
