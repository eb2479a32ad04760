"""How a client's table or connection ends."""

from __future__ import annotations

from dealer.errors.base import DealerError


class HouseCheated(DealerError):
    """The house sent this client contradictory or invalid data.

    `evidence` is a `dealer.client.event_verifier.Evidence`, or None before the table is known.
    """

    def __init__(self, sentence: str, evidence: object = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.evidence = evidence


class HouseUnreachable(DealerError):
    """The server does not answer at its address, or its connections are lost repeatedly."""


class SessionEnded(DealerError):
    """The server closed the connection with a final close code: 1009, 4401, 4403, 4408 or 4409."""

    def __init__(self, sentence: str, *, code: int) -> None:
        super().__init__(sentence)
        self.code = code
