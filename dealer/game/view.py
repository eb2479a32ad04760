"""What each viewer may know, and nothing more.

Visibility belongs to the event. Its public part is everybody's; of its hidden part `entitled`
says, type by type, which one seat may see a face, and a type that is not named there shows
nothing. So the bytes that a viewer gets stay the same when cards they may not see are exchanged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dealer.game.events import CardDrawn, CardMoved, CardPeeked, Event
from dealer.game.stacks import seat_of
from dealer.game.state import Round, Table


class Viewer(NamedTuple):
    """Who looks: a seat since the version of its SeatTaken, or, with no seat, a spectator."""

    seat: int | None = None
    since: int = 0


SPECTATOR = Viewer()


class Glimpse(NamedTuple):
    """One face that one seat may see."""

    seat: int
    slot: int
    card: str


def entitled(event: Event) -> Glimpse | None:
    """The face that this event shows to one seat alone; None where it shows nothing hidden."""
    match event:
        case CardDrawn(_, seat, _, slot, card) if card is not None:
            return Glimpse(seat, slot, card)
        case CardPeeked(_, slot, seat, card) if card is not None:
            return Glimpse(seat, slot, card)
        case CardMoved(_, slot, _, to, _, card) if card is not None:
            owner = seat_of(to)
            return None if owner is None else Glimpse(owner, slot, card)
        case _:
            return None


def may_see(viewer: Viewer, seat: int, version: int) -> bool:
    """Whether `viewer` may see what event `version` shows to `seat` alone.

    Not if somebody else sat there then: they saw it, and not who came later.
    """
    return viewer.seat == seat and viewer.since < version


def sits(table: Table, viewer: Viewer) -> bool:
    """Whether a viewer still has the seat that they look from; a spectator has nothing to lose."""
    player = None if viewer.seat is None else table.seats.get(viewer.seat)
    return viewer.seat is None or (player is not None and player.since == viewer.since)


def faces(round_: Round, viewer: Viewer) -> dict[int, str]:
    """The faces, by slot in rising order, that a viewer may know of what lies on the table."""
    seen = set(round_.shown)
    if viewer.seat is not None:
        seen |= round_.known.get(viewer.seat, set())
    return {slot: face for slot in sorted(seen) if (face := round_.faces[slot]) is not None}


def snapshot(table: Table, viewer: Viewer) -> dict[str, Any]:
    """The table as one viewer may know it, in values that JSON has.

    Stacks list slots, bottom first; a card that no shuffle has sealed yet is `-1 - place` of the
    round's deck. `cards` are [slot, card] pairs that this viewer may see.
    """
    state: dict[str, Any] = {
        "version": table.version,
        "at": table.at,
        "origin": table.origin,
        "key": table.key.hex(),
        "rules": dict(table.rules.given),
        "closed": table.closed,
        "rounds": len(table.openings),
        "seats": [
            {"seat": seat, "name": player.name, "since": player.since}
            | ({"key": player.key.hex()} if player.key else {})
            for seat, player in sorted(table.seats.items())
        ],
    }
    if table.round is not None:
        state["round"] = _round_view(table.round, viewer)
    return state


def _round_view(round_: Round, viewer: Viewer) -> dict[str, Any]:
    stacks = {name: list(cards) for name, cards in sorted(round_.stacks.items())}
    if round_.shuffle is not None:
        # Between its swaps and its seal a stack would show what the swaps hide.
        stacks[round_.shuffle.stack] = list(round_.shuffle.before)
    on_table = sorted(card for cards in stacks.values() for card in cards if card >= 0)
    view: dict[str, Any] = {
        "round": round_.number,
        "deck": list(round_.opened),
        "entropy": round_.entropy,
        "commit_ms": round_.commit_ms,
        "reveal_ms": round_.reveal_ms,
        "commitment": round_.commitment.hex(),
        "k": round_.k,
        "slots": len(round_.faces),
        "stacks": stacks,
        "commitments": [[slot, round_.commitment_of(slot).hex()] for slot in on_table],
        "drawable": [slot for slot in on_table if round_.drawable[slot]],
        "cards": [[slot, card] for slot, card in faces(round_, viewer).items()],
        "shown": sorted(round_.shown),
        "ahead": [[seat, digest.hex()] for seat, digest in sorted(round_.ahead.items())],
        "withheld": sorted(round_.withheld),
    }
    shuffle = round_.shuffle
    if shuffle is not None:
        view["shuffle"] = {
            "k": shuffle.k,
            "stack": shuffle.stack,
            "n": shuffle.n,
            "algorithm": shuffle.algorithm,
            "steps": shuffle.steps,
            "started_at": shuffle.started_at,
            "closed_version": shuffle.closed_version,
            "closed_at": shuffle.closed_at,
            "digests": [[seat, digest.hex()] for seat, digest in sorted(shuffle.digests.items())],
            "nonces": [[seat, nonce.hex()] for seat, nonce in sorted(shuffle.nonces.items())],
        }
    return view
