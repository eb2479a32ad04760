"""Requests that a client sends automatically: entropy for shuffles and cosignatures of checkpoints.

No input and output except the store: `due` returns the requests to send.
"""

from __future__ import annotations

import time

from dealer.client.entropy import Entropy
from dealer.client.event_verifier import EventVerifier
from dealer.client.requests import Request
from dealer.client.store import TableStore
from dealer.errors import ConfigurationError
from dealer.game.events import DeckSealed, EntropyClosed, RoundClosed, TableClosed
from dealer.proof.checkpoint import Cosigner

COSIGNED = EntropyClosed | DeckSealed | RoundClosed | TableClosed
"""The events after which the server signs a checkpoint, and a player with a key cosigns it."""


class AutoResponder:
    """Automatic requests of one viewer at one table; `table` is its id, 32 hex digits.

    `cosigner` is the key of this player at this table, None where the client does not cosign.
    """

    def __init__(self, table: str, store: TableStore, cosigner: Cosigner | None) -> None:
        self._store = store
        self.cosigner = cosigner
        self._due = 0  # version of the latest event after which a checkpoint is due
        self._uncosigned = ""  # the newest checkpoint that was verified and not cosigned yet
        self.entropy: Entropy = Entropy(table=bytes.fromhex(table), store=store)

    def due(self, verifier: EventVerifier, *, live: bool) -> list[Request]:
        """Store new heads; the methods and parameters to send now.

        Entropy is sent only if the client is `live`, which means up to date with the server, and if
        the log is known to continue the heads that were saved.
        """
        log = verifier.log
        if log.key is not None:
            self._store.update(key=log.key.hex())
        if verifier.last is not None and isinstance(verifier.last.event, COSIGNED):
            self._due = verifier.last.version
        fresh, log.fresh = log.fresh, []
        for head in fresh:
            self._store.save_head(head)
            if head.size == self._due:
                self._uncosigned = head.note
        state, holder = verifier.state, verifier.state.holder(verifier.seat)
        if holder is None or holder.taken_at != self._store.record.get("since"):
            return []  # the seat belongs to an earlier or a later player
        seat = holder.seat
        if not (live and log.linked):
            self.entropy.check_included(state, seat=seat)
            return []
        step = self.entropy.next_step(state, seat=seat, heads=log.heads, leaves=verifier.digests)
        return ([] if step is None else [step]) + self._cosignature_due(state.seats[seat].key)

    def signature(self, note: str) -> str:
        """This player's cosignature line of a note; ConfigurationError without a key."""
        if self.cosigner is None:
            raise ConfigurationError(
                "This client does not cosign: it was connected with `cosigner=False`."
            )
        return self.cosigner.cosign(note, time=int(time.time()))

    def _cosignature_due(self, key: bytes | None) -> list[Request]:
        """Only the newest checkpoint: after a resume it covers those that were missed."""
        note, self._uncosigned = self._uncosigned, ""
        if not note or self.cosigner is None or self.cosigner.public_key != key:
            return []
        return [("table.cosign", {"cosignature": self.signature(note)})]
