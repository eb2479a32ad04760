"""Round secrets, events with the hidden parts that they encrypt, and what damage is called."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from typing import Any

from dealer.errors import DatabaseDamaged
from dealer.eventlog import EventRecord
from dealer.eventlog.keys import RoundCipher, pad
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import HIDDEN_TYPES, Event
from dealer.proof import codec
from dealer.proof.concatenation import be32, be64, lp
from dealer.proof.round_keys import LENGTH_32, RoundKeys


class RoundSecret:
    """S and what is derived from it; implements `dealer.game.decide.RoundSecrets`.

    `wrapped` is S as the log stores it with RoundOpened. The methods are bound methods of the
    round's keys and cipher, without another call in between: they run for every swap and draw.
    """

    def __init__(self, *, table: bytes, round: int, secret: bytes, wrapped: bytes) -> None:
        keys = RoundKeys(table=table, round=round, secret=secret)
        seal = RoundCipher(table=table, seal_key=keys.seal_key)
        self.round = round
        self.secret = secret
        self.wrapped = wrapped
        self.commitment = keys.commitment
        self.event_commitment = keys.event_commitment
        self.event_commitments = keys.event_commitments
        self.slot_salt = keys.slot_salt
        self.slot_commitments = keys.slot_commitments
        self.player_digest = keys.player_digest
        self.encrypt = seal.encrypt
        self._event_salt, self._slot_salt = keys.event_salts.digest, keys.slot_salts.digest
        self._event_start, self._seal, self._about = keys.event_start, seal.seal, seal.about
        self.encrypt_many = seal.encrypt_many
        self.decrypt = seal.decrypt

    def draw(self, version: int, slot: int, card: str, nonce: bytes) -> tuple[bytes, bytes, str]:
        """The commitment to a draw's hidden part, that part encrypted, and the opening of its slot.

        What `event_commitment`, `encrypt` and `slot_salt` give, in one call: for every draw.
        """
        quoted, part, padded = _face(card)
        number = be64(version)
        salted = number + LENGTH_32 + self._event_salt(number) + part
        hidden = nonce + self._seal(nonce, padded, self._about + number)
        opening = f'{{"card":{quoted},"salt":"{self._slot_salt(be32(slot)).hex()}","slot":{slot}}}'
        return sha256(self._event_start + salted).digest(), hidden, opening


@lru_cache
def _face(card: str) -> tuple[str, bytes, bytes]:
    """A card's code as JSON; the hidden part of its draw after its length; and that part padded."""
    quoted = codec.quote(card)
    part = f'{{"card":{quoted}}}'.encode()
    return quoted, lp(part), pad(part)


def private_part(event: Event, secret: RoundSecret | NoRoundSecrets) -> tuple[int | None, str]:
    """The seat that an event shows a face to, and the JSON of its opening; (None, "") if none."""
    glimpse = event.private_face()
    if glimpse is None:
        return None, ""
    seat, slot, card = glimpse
    salt = secret.slot_salt(slot).hex()
    return seat, f'{{"card":{codec.quote(card)},"salt":"{salt}","slot":{slot}}}'


def event_of(row: EventRecord, secret: RoundSecret | NoRoundSecrets) -> Event:
    """The event of a row; with NoRoundSecrets without its hidden part.

    Raises DatabaseDamaged if the hidden part is not the one that the leaf commits to: the key of a
    closed round is public, so that others can encrypt one, too.
    """
    hidden: dict[str, Any] = {}
    if isinstance(secret, RoundSecret) and row.hidden is not None and row.type in HIDDEN_TYPES:
        part = secret.decrypt(row.version, row.hidden)
        if row.commitment is not None:
            require_committed(row, part, secret)
        hidden = json.loads(part)
    return codec.decode(row.type, row.schema, row.members(), hidden)


def require_committed(row: EventRecord, part: bytes, secret: RoundSecret) -> None:
    """Raise DatabaseDamaged unless `part`, the hidden part, is what the row's leaf commits to."""
    if secret.event_commitment(row.version, part.decode()) != row.commitment:
        raise DatabaseDamaged(
            f"The hidden part of version {row.version} is not the one that its event commits to: "
            "the database was altered; restore it from a backup."
        )


def unsigned(table_id: str, row: EventRecord) -> DatabaseDamaged:
    """The error for a table, by its id in hex, that lacks the checkpoint which is due at `row`."""
    return DatabaseDamaged(
        f"The signed checkpoint of table {table_id} at version {row.version} ({row.type}) is "
        "missing: the database was altered or is incomplete. Restore it from a backup."
    )


def tampered(table_id: str) -> DatabaseDamaged:
    """The error for a table, by its id in hex, whose rows are not what the house signed."""
    return DatabaseDamaged(
        f"The events of table {table_id} are not those that the house signed: the "
        "database was altered or is incomplete. Restore it from a backup."
    )
