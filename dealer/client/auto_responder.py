"""Requests that a client sends automatically: entropy for shuffles and cosignatures of checkpoints.

A player's entropy is 32 new random bytes in every shuffle, committed first and revealed later. A
digest may be sent before its shuffle. The bytes are revealed only under a signed head that covers
the digest, because from then on the house cannot change anything that depends on them.

No input and output except the store: `due` returns the requests to send, each at most once.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Container, Mapping

from dealer.client.event_verifier import EventVerifier
from dealer.client.requests import Request
from dealer.client.storage import NonceKey, TableStore
from dealer.errors import ConfigurationError
from dealer.game.events import DeckSealed, EntropyClosed, RoundClosed, TableClosed
from dealer.game.state import Shuffle, Table
from dealer.proof.checkpoint import Cosigner
from dealer.proof.round_keys import player_digest

NONCE_BYTES = 32
BYTES_OF = {"players": "the players' bytes", "house": "the house's bytes alone"}


class Entropy:
    """The entropy of one seat for the shuffles of one table.

    `table` is its id, 16 bytes; `store` keeps the bytes before their digest is sent. `doubts` are
    sentences about the house that this player knows but cannot prove: shuffles without its bytes,
    rounds with other entropy than it asked for.
    """

    def __init__(self, *, table: bytes, store: TableStore) -> None:
        self._table = table
        self._store = store
        self._promised: set[NonceKey] = set()
        self._revealed: set[NonceKey] = set()
        self._doubted: set[NonceKey] = set()
        self._others: set[bytes] = set()  # digests that another client of this player has sent
        self.doubts: list[str] = []

    def next_step(
        self, table: Table, *, seat: int, heads: Mapping[int, bytes], leaves: Container[bytes]
    ) -> Request | None:
        """What `seat` should send now; None for nothing.

        `heads` maps sizes of verified signed heads to their roots; `leaves` holds the digests that
        are in leaves of this client's tree, and so covered by its heads.
        """
        round_, player = table.round, table.seats.get(seat)
        if player is None or round_ is None or round_.entropy != "players":
            return None
        key = (round_.number, round_.k, seat, player.taken_at)
        if seat in round_.withheld:
            self._check_withheld(key)
            return None
        shuffle = round_.shuffle
        if shuffle is None:
            return self._promise(round_.early_digests, key)
        if shuffle.closed_version:
            self.check_included(table, seat=seat)
            if shuffle.digests.get(seat, b"") not in leaves:
                heads = {}
            return self._reveal(shuffle, heads, key)
        return self._promise(shuffle.digests, key)

    def check_included(self, table: Table, *, seat: int) -> None:
        """Doubt a shuffle whose digests were closed without ours, also while catching up.

        A house that claims to be still sending the backlog prevents a client from committing.
        """
        round_, player = table.round, table.seats[seat]
        shuffle = None if round_ is None else round_.shuffle
        if round_ is None or shuffle is None or round_.entropy != "players":
            return
        if seat in round_.withheld or player.taken_at >= shuffle.closed_version:
            return
        key = (round_.number, shuffle.k, seat, player.taken_at)
        if seat not in shuffle.digests:
            sentence = f"Shuffle {shuffle.k} of round {round_.number} does not use our bytes."
            self._doubt(key, sentence)
        else:
            self._own(shuffle.digests[seat], key)

    def attribute(self, table: Table, *, seat: int) -> None:
        """Take the digests of `seat` in `table` for those of another client of this player.

        They came while this client was away; only the client that drew their bytes can check them.
        """
        round_ = table.round
        if round_ is not None:
            running = {} if round_.shuffle is None else round_.shuffle.digests
            for digests in (round_.early_digests, running):
                if seat in digests:
                    self._others.add(digests[seat])

    def compare(self, round_: int, *, taken: str, asked: str) -> None:
        """Doubt a round with other entropy than this client asked for."""
        if taken != asked:
            self.doubts.append(
                f"Round {round_} uses {BYTES_OF[taken]}, but {BYTES_OF[asked]} were requested."
            )

    def _promise(self, given: Mapping[int, bytes], key: NonceKey) -> Request | None:
        number, k, seat, _ = key
        if key in self._promised:
            return None
        if seat in given:
            self._own(given[seat], key)
            return None
        nonce = self._store.nonces.get(key)
        if nonce is None or nonce.revealed_under:
            # The house knows bytes that were revealed once: they must never be committed again.
            value = secrets.token_bytes(NONCE_BYTES)
            self._store.save_nonce(key, value)
        else:
            value = nonce.value
        self._promised.add(key)
        digest = self._digest(key, value).hex()
        return "entropy.commit", {"round": number, "k": k, "digest": digest}

    def _reveal(
        self, shuffle: Shuffle, heads: Mapping[int, bytes], key: NonceKey
    ) -> Request | None:
        number, k, seat, _ = key
        if seat not in shuffle.digests:
            return None
        root = heads.get(shuffle.closed_version)
        if root is None or seat in shuffle.nonces or key in self._revealed:
            return None
        value = self._own(shuffle.digests[seat], key)
        if value is None:
            return None
        under = self._store.nonces[key].revealed_under
        if under and under != root:
            self._doubt(key, "Our bytes were already revealed under another signed head.")
            return None
        if not under:
            self._store.mark_revealed(key, root=root)
        self._revealed.add(key)
        return "entropy.reveal", {"round": number, "k": k, "nonce": value.hex()}

    def _check_withheld(self, key: NonceKey) -> None:
        number, k, seat, since = key
        voided = (number, k - 1, seat, since)
        nonce = self._store.nonces.get(voided)
        if nonce is None:
            return
        why = (
            "although we sent our bytes"
            if nonce.revealed_under
            else "and we could not reveal our bytes, because no signed head covered our digest"
        )
        sentence = (
            f"The server recorded that we withheld our bytes in shuffle {k - 1} of round {number}, "
            f"{why}."
        )
        self._doubt(voided, sentence)

    def _own(self, digest: bytes, key: NonceKey) -> bytes | None:
        """Our bytes for a digest; None, and mostly a doubt, if the digest is not ours."""
        nonce = self._store.nonces.get(key)
        if nonce is None or self._digest(key, nonce.value) != digest:
            if digest not in self._others:
                self._doubt(key, f"Shuffle {key[1]} has another digest than ours.")
            return None
        return nonce.value

    def _digest(self, key: NonceKey, nonce: bytes) -> bytes:
        number, k, seat, _ = key
        return player_digest(table=self._table, round=number, k=k, seat=seat, nonce=nonce)

    def _doubt(self, key: NonceKey, sentence: str) -> None:
        if key not in self._doubted:
            self._doubted.add(key)
            self.doubts.append(sentence)


COSIGNED = EntropyClosed | DeckSealed | RoundClosed | TableClosed
"""The events after which the server signs a checkpoint, and a player with a key cosigns it."""


class AutoResponder:
    """Automatic requests of one viewer at one table; `table` is its id, 32 hex digits.

    `cosigner` is the key of this player at this table, None if the client does not cosign.
    """

    def __init__(self, table: str, store: TableStore, cosigner: Cosigner | None) -> None:
        self._store = store
        self.cosigner = cosigner
        self._due = 0  # version of the latest event after which a checkpoint is due
        self._uncosigned = ""  # the newest checkpoint that was verified and not cosigned yet
        self.entropy: Entropy = Entropy(table=bytes.fromhex(table), store=store)

    def due(self, verifier: EventVerifier, *, live: bool, away: bool) -> list[Request]:
        """Store new heads; the methods and parameters to send now.

        Entropy is sent only if the client is `live`, which means up to date with the server, and if
        the log is known to continue the heads that were saved. `away` says that the newest event is
        of a time when this client was not connected.
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
        if away and self._store.record.get("shared"):
            self.entropy.attribute(state, seat=seat)
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
