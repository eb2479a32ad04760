"""The secret of a round, open or closed, as the house holds it in memory."""

from __future__ import annotations

from dealer.eventlog.sealing import RoundSeal
from dealer.proof.keys import RoundKeys


class RoundSecret:
    """S and what is derived from it, as `dealer.game.decide.House` asks for it.

    `wrapped` is S as the log keeps it beside RoundOpened. The methods are those of the round's
    keys and seal themselves: they run for every swap and draw.
    """

    def __init__(self, *, table: bytes, round: int, secret: bytes, wrapped: bytes) -> None:
        keys = RoundKeys(table=table, round=round, secret=secret)
        seal = RoundSeal(table=table, seal_key=keys.seal_key)
        self.round = round
        self.secret = secret
        self.wrapped = wrapped
        self.commitment = keys.commitment
        self.event_commitment = keys.event_commitment
        self.event_commitments = keys.event_commitments
        self.slot_salt = keys.slot_salt
        self.slot_commitments = keys.slot_commitments
        self.player_digest = keys.player_digest
        self.seal = seal.seal
        self.seal_many = seal.seal_many
        self.unseal = seal.unseal
