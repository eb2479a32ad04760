"""Faults of what is verified: bundles, canonical texts, notes."""

from __future__ import annotations

from dealer.errors.base import DealerError


class ProofFault(DealerError):
    """The first fault of a bundle.

    `check` is one of form, heads, saved, secrets, tape, seals, moves; `line` is the line of the
    bundle, counted from 0 (the header), so that a leaf's line is its version.
    """

    def __init__(self, check: str, line: int, sentence: str) -> None:
        super().__init__(f"{check}, line {line}: {sentence}")
        self.check = check
        self.line = line
        self.sentence = sentence


class NotCanonical(DealerError, ValueError):
    """A value outside the canonical JSON subset, or a text that is not in canonical form."""


class UnknownEvent(DealerError):
    """The log contains an event that this version of dealer cannot read."""


class HistoryUnavailable(DealerError):
    """There is no such round, or the requested format cannot represent it."""


class NoteFault(DealerError, ValueError):
    """A signed note, signature line or verifier key is malformed or does not verify."""
