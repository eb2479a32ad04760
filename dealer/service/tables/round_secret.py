"""Round secret: the secret of a round, open or closed, with its derived keys."""

from __future__ import annotations

from dealer.eventlog.keys import RoundCipher
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import Event
from dealer.proof.codec import quote
from dealer.proof.keys import RoundKeys


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
        self.encrypt_many = seal.encrypt_many
        self.decrypt = seal.decrypt


def private_part(event: Event, secret: RoundSecret | NoRoundSecrets) -> tuple[int | None, str]:
    """The seat that an event shows a face to, and the JSON of its opening; (None, "") if none."""
    glimpse = event.private_face()
    if glimpse is None:
        return None, ""
    seat, slot, card = glimpse
    salt = secret.slot_salt(slot).hex()
    return seat, f'{{"card":{quote(card)},"salt":"{salt}","slot":{slot}}}'
