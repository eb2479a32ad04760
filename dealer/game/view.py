"""Views: the part of a table's state that one viewer may know.

Visibility is a property of events: their public members are public, and a hidden face is shown
only to the player at the seat that `event.private_face()` names, not to one who took the seat after
the event; a type of event that does not define it shows nothing. Therefore exchanging two cards
that a viewer may not see does not change the bytes that the viewer receives.

A broadcast is sent each event as the player sees it to whom it shows a face: no card of the deck,
none that only lay face down. The events are all that it is sent.
"""

from __future__ import annotations

from typing import Any, Literal

from dealer.game.state import Round, SeatHolder, Table

Viewer = SeatHolder | None
"""The player for whom a view is made; None for a spectator."""

SPECTATOR: Viewer = None


Audience = Literal["broadcast"]
BROADCAST: Audience = "broadcast"
"""Who watches a broadcast, and sees what all players together have seen."""


def faces(round_: Round, viewer: Viewer) -> dict[int, str]:
    """The faces that a viewer may know, by slot in ascending order."""
    seen = set(round_.shown)
    if viewer is not None:
        seen |= round_.known.get(viewer.seat, set())
    return {slot: face for slot in sorted(seen) if (face := round_.faces[slot]) is not None}


def snapshot(table: Table, viewer: Viewer) -> dict[str, Any]:
    """The table as one viewer may know it, as JSON values.

    Stacks list slots, bottom first; a card that no shuffle has sealed yet is `-1 - place`, with its
    place in the round's opening deck. `cards` are the [slot, card] pairs that the viewer may see.
    """
    state: dict[str, Any] = {
        "version": table.version,
        "at": table.at,
        "origin": table.origin,
        "key": table.key.hex(),
        "rules": dict(table.rules.given),
        "closed": table.closed,
        "rounds": len(table.round_versions),
        "seats": [
            {"seat": seat, "name": player.name, "since": player.taken_at}
            | ({"key": player.key.hex()} if player.key else {})
            | ({"bot": True} if player.bot else {})
            for seat, player in sorted(table.seats.items())
        ],
    }
    if table.host_seat is not None:
        state["host_seat"] = table.host_seat
    if table.round is not None:
        state["round"] = _round_view(table.round, viewer)
    return state


def _round_view(round_: Round, viewer: Viewer) -> dict[str, Any]:
    stacks = {name: list(cards) for name, cards in sorted(round_.stacks.items())}
    if round_.shuffle is not None:
        # Between the swaps and the seal, the stack's current order would reveal the hidden j.
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
        "ahead": [[seat, digest.hex()] for seat, digest in sorted(round_.early_digests.items())],
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
