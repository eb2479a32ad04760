"""What a player owes the table without being asked: heads are kept, digests sent, bytes revealed.

No input and output here but the store: `due` says what is to be sent.
"""

from __future__ import annotations

import time

from dealer.client.entropy import Entropy, Promise, Reveal
from dealer.client.questions import Members
from dealer.client.store import TableStore
from dealer.client.witness import Witness
from dealer.errors import SetupError
from dealer.game.events import DeckSealed, EntropyClosed, RoundClosed, TableClosed
from dealer.proof.checkpoint import Cosigner

COSIGNED = EntropyClosed | DeckSealed | RoundClosed | TableClosed
"""The events after which the server signs a checkpoint, and a player with a key cosigns it."""

Request = tuple[str, Members]


class Duties:
    """The duties of one viewer at one table, an id of 32 hex digits.

    `cosigner` is the key of this player at this table, None where the client does not cosign.
    """

    def __init__(self, table: str, store: TableStore, cosigner: Cosigner | None) -> None:
        self._store = store
        self.cosigner = cosigner
        self._due = 0  # version of the latest event after which a checkpoint is due
        self._uncosigned = ""  # the newest checkpoint that was verified and not cosigned yet
        self.entropy = Entropy(table=bytes.fromhex(table), store=store)

    def due(self, witness: Witness, *, live: bool) -> list[Request]:
        """Keep what is new; methods and parameters to be sent now.

        Bytes are given only to a table that is `live`, which has caught up with the house, and
        whose log is known to continue what was saved of it.
        """
        story = witness.story
        if story.key is not None:
            self._store.learn(key=story.key.hex())
        if witness.last is not None and isinstance(witness.last.event, COSIGNED):
            self._due = witness.last.version
        fresh, story.fresh = story.fresh, []
        for head in fresh:
            self._store.keep_head(head)
            if head.size == self._due:
                self._uncosigned = head.note
        if witness.seat is None or not self._seated(witness):
            return []
        if not (live and story.linked):
            self.entropy.look(witness.state, seat=witness.seat)
            return []
        return self._entropy_due(witness) + self._cosignature_due(witness)

    def signature(self, note: str) -> str:
        """This player's cosignature line of a note; SetupError without a key."""
        if self.cosigner is None:
            raise SetupError("This client does not cosign: `connect` was told `cosigner=False`.")
        return self.cosigner.cosign(note, time=int(time.time()))

    def _cosignature_due(self, witness: Witness) -> list[Request]:
        """The newest checkpoint alone: after a resume it covers those that were missed."""
        note, self._uncosigned = self._uncosigned, ""
        key = witness.state.seats[witness.seat or 0].key
        if not note or self.cosigner is None or self.cosigner.public_key != key:
            return []
        return [("table.cosign", {"cosignature": self.signature(note)})]

    def _seated(self, witness: Witness) -> bool:
        """Whether it is this player who sits there, and not who had the seat before or after."""
        player = witness.state.seats.get(witness.seat or 0)
        return player is not None and player.since == self._store.facts.get("since")

    def _entropy_due(self, witness: Witness) -> list[Request]:
        step = self.entropy.next_step(
            witness.state,
            seat=witness.seat,
            heads=witness.story.heads,
            leaves=witness.digests,
        )
        match step:
            case Promise(round_, k, digest):
                return [("entropy.commit", {"round": round_, "k": k, "digest": digest.hex()})]
            case Reveal(round_, k, nonce):
                return [("entropy.reveal", {"round": round_, "k": k, "nonce": nonce.hex()})]
            case None:
                return []
