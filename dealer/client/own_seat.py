"""The seat of a client's player: given up by an event, or changed when the player moves.

A move is a note of the kind `seat_move` and, in the same append, SeatLeft and SeatTaken. The token
stays valid, and the server's state and that of the client follow the player (`Table.latest`).
"""

from __future__ import annotations

from dealer.client.event_verifier import EventVerifier
from dealer.client.store import TableStore
from dealer.game.events import Event, SeatGivenUp, SeatTaken
from dealer.game.state import SeatHolder


class OwnSeat:
    """Keeps the seat of `verifier`, and the facts of `store` about it."""

    def __init__(self, verifier: EventVerifier, store: TableStore) -> None:
        self._verifier = verifier
        self._store = store
        verifier.seat = store.facts.get("seat")

    def follow(self, event: Event, version: int) -> bool:
        """Follow an event that was verified; whether the player has moved by it."""
        seat, since = self._verifier.seat, self._store.facts.get("since") or 0
        if seat is None or version <= since:  # an earlier version is of an earlier player
            return False
        holder = SeatHolder(seat, since)
        latest = self._verifier.state.latest(holder)
        if isinstance(event, SeatTaken) and version == latest.taken_at:
            self._sit(latest)
            return True
        if isinstance(event, SeatGivenUp) and event.seat == seat and latest == holder:
            self.release()
        return False

    def return_to(self, seat: int | None) -> None:
        """After a snapshot: sit where the server says that the token's player sits."""
        holder = self._verifier.state.holder(seat)
        if self._verifier.seat is not None and holder is not None:
            self._sit(holder)

    def release(self) -> None:
        """Forget the seat and its token, which is no longer valid."""
        self._store.learn(token=None, seat=None, since=None)
        self._verifier.seat = None

    def _sit(self, holder: SeatHolder) -> None:
        self._verifier.seat = holder.seat
        self._store.learn(seat=holder.seat, since=holder.taken_at)
