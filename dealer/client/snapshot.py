"""Reads a snapshot of a table into its state, to which later events are applied.

The inverse of `dealer.game.view.snapshot`, with the same members. On the wire each of `cards` also
has the salt that opens its commitment: [slot, card, salt].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dealer.errors import HouseCheated
from dealer.game.rules import Rules
from dealer.game.state import COMMITMENT_BYTES, Player, Round, Shuffle, Table

Members = Mapping[str, Any]


def restore(state: Members, *, seat: int | None) -> Table:
    """The state that a snapshot describes for the viewer `seat` (None: a spectator).

    Raises HouseCheated if members are missing or contradict each other.
    """
    try:
        return _table(state, seat)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise HouseCheated(
            "The server sent a snapshot that cannot be a state of the table."
        ) from error


def _table(state: Members, seat: int | None) -> Table:
    return Table(
        version=state["version"],
        at=state["at"],
        origin=state["origin"],
        key=bytes.fromhex(state["key"]),
        rules=Rules.read(state["rules"]),
        seats={
            player["seat"]: Player(
                player["name"],
                bytes.fromhex(player["key"]) if "key" in player else None,
                player["since"],
                player.get("bot", False),
            )
            for player in state["seats"]
        },
        host_seat=state.get("host_seat"),
        round=_round(state["round"], seat) if "round" in state else None,
        round_versions=[0] * state["rounds"],
        closed=state["closed"],
    )


def _round(view: Members, seat: int | None) -> Round:
    slots: int = view["slots"]
    round_ = Round(
        number=view["round"],
        opened=tuple(view["deck"]),
        entropy=view["entropy"],
        commit_ms=view["commit_ms"],
        reveal_ms=view["reveal_ms"],
        commitment=bytes.fromhex(view["commitment"]),
        stacks={name: list(cards) for name, cards in view["stacks"].items()},
        k=view["k"],
        early_digests=_bytes_by_seat(view["ahead"]),
        withheld=set(view["withheld"]),
        faces=[None] * slots,
        sealed=bytearray(COMMITMENT_BYTES * slots),
        drawable=bytearray(slots),
        shown=set(view["shown"]),
    )
    for slot, commitment in view["commitments"]:
        start = COMMITMENT_BYTES * slot
        round_.sealed[start : start + COMMITMENT_BYTES] = bytes.fromhex(commitment)
    for slot in view["drawable"]:
        round_.drawable[slot] = 1
    for slot, card, _ in view["cards"]:
        round_.faces[slot] = card
    if seat is not None:
        round_.known[seat] = {slot for slot, *_ in view["cards"]}
    if len(round_.sealed) != COMMITMENT_BYTES * slots:
        raise ValueError("a commitment has 32 bytes")
    cards = sorted(card for cards in round_.stacks.values() for card in cards)
    if len(cards) != len(round_.opened) or len(set(cards)) != len(cards):
        raise ValueError("each card of the deck is in exactly one stack")
    if cards[0] < -len(round_.opened) or cards[-1] >= slots:
        raise ValueError("a card is in a slot that was never made")
    if "shuffle" in view:
        round_.shuffle = _shuffle(view["shuffle"], round_)
    return round_


def _shuffle(view: Members, round_: Round) -> Shuffle:
    return Shuffle(
        k=view["k"],
        stack=view["stack"],
        n=view["n"],
        algorithm=view["algorithm"],
        steps=view["steps"],
        started_at=view["started_at"],
        digests=_bytes_by_seat(view["digests"]),
        before=tuple(round_.cards(view["stack"])),
        nonces=_bytes_by_seat(view["nonces"]),
        closed_version=view["closed_version"],
        closed_at=view["closed_at"],
    )


def _bytes_by_seat(pairs: list[tuple[int, str]]) -> dict[int, bytes]:
    return {seat: bytes.fromhex(text) for seat, text in pairs}
