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
from dealer.game.events import EntropyClosed, RoundClosed, TableClosed
from dealer.proof.checkpoint import Cosigner

COSIGNED = EntropyClosed | RoundClosed | TableClosed
"""After these a player with a key says: this is what I saw, too."""

Request = tuple[str, Members]


class Duties:
    """The duties of one viewer at one table, an id of 32 hex digits."""

    def __init__(self, table: str, store: TableStore, cosigner: Cosigner | None) -> None:
        self._store = store
        self._cosigner = cosigner
        self.entropy = Entropy(table=bytes.fromhex(table), store=store)

    def due(self, witness: Witness, *, live: bool) -> list[Request]:
        """Keep what is new; methods and parameters to be sent now.

        Bytes are given only to a table that is `live`, which has caught up with the house, and
        whose log is known to continue what was saved of it.
        """
        story = witness.story
        if story.key is not None:
            self._store.learn(key=story.key.hex())
        requests = []
        fresh, story.fresh = story.fresh, []
        for head in fresh:
            self._store.keep_head(head)
            newest = witness.last is not None and witness.last.version == head.size
            if newest and self._seated(witness) and self._cosigner is not None:
                assert witness.last is not None
                if isinstance(witness.last.event, COSIGNED):
                    params = {"cosignature": self.signature(head.note)}
                    requests.append(("table.cosign", params))
        if witness.seat is not None and self._seated(witness):
            if live and story.linked:
                requests += self._entropy_due(witness)
            else:
                self.entropy.look(witness.state, seat=witness.seat)
        return requests

    def signature(self, note: str) -> str:
        """This player's cosignature line of a note; SetupError without a key."""
        if self._cosigner is None:
            raise SetupError("Give `connect` a player's key to cosign with it.")
        return self._cosigner.cosign(note, time=int(time.time()))

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
