"""What a verifier tells the person who asked: yes or no to each question, then what it counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dealer.errors import ProofFault

CHECKS = ("form", "heads", "saved", "secrets", "tape", "seals", "moves")
"""The checks in their order; the last four are made event by event."""

_FIRST_OF_EVENTS = CHECKS.index("secrets")
_QUESTIONS = {
    "form": "every line is written in its one form",
    "heads": "the house signed these heads, and the log is the one under them",
    "saved": "the log agrees with the checkpoints you saved",
    "secrets": "secrets and players' bytes open what was committed to before",
    "tape": "every swap is the one that these bytes give",
    "seals": "every sealed or shown card is the one the shuffle left there",
    "moves": "every other event was legal, and each card lay where it was taken from",
}


class Swap(NamedTuple):
    """One step of a shuffle whose round is closed.

    Places `i` and `j` were exchanged; `words` are those of the tape that j was taken from, the
    last one accepted and those before it refused; `cards` lay in i and j before.
    """

    version: int
    round: int
    k: int
    step: int
    i: int
    j: int
    words: tuple[int, ...]
    cards: tuple[str, str]


@dataclass(slots=True)
class Remarks:
    """What was counted up to the end, or up to the first fault.

    `shuffles` were started, `voided` of them given up; `house_only` were sealed with no player's
    bytes. `left_out` seats had no digest when one could still count, `withheld` did not open
    theirs. `reused` reveals had a nonce that this table's log had revealed before, from whichever
    seat. `not_top` draws took another card than the top one. `cosigned` checkpoints' lines are
    good cosignatures. `open_rounds` is counted at the end alone.
    """

    rounds: int = 0
    open_rounds: int = 0
    shuffles: int = 0
    voided: int = 0
    house_only: int = 0
    left_out: int = 0
    withheld: int = 0
    reused: int = 0
    not_top: int = 0
    cosigned: int = 0
    pinned: bool = False


@dataclass(slots=True)
class Report:
    """The outcome: no `fault`, or the first one, with `remarks` and `swaps` as far as it came.

    `cosigners` counts good cosignatures by the player's key in hex; `cosigned_upto` is the size of
    the newest checkpoint that each key cosigned, `names` has the names that went with these keys.
    """

    fault: ProofFault | None = None
    remarks: Remarks = field(default_factory=Remarks)
    swaps: list[Swap] = field(default_factory=list)
    origin: str = ""
    key: str = ""
    saved: int = 0
    cosigners: dict[str, int] = field(default_factory=dict)
    cosigned_upto: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.fault is None

    def verdicts(self) -> list[str]:
        """Lines for a person: one for each check, then the remarks if it came to the events."""
        return [*self._answers(), *self._sentences()]

    def _answers(self) -> Iterator[str]:
        faulty = len(CHECKS) if self.fault is None else CHECKS.index(self.fault.check)
        for number, check in enumerate(CHECKS):
            question = _QUESTIONS[check]
            if self.fault is not None and number == faulty:
                yield f"{check}: no, in line {self.fault.line}: {self.fault.sentence}"
            elif check == "saved" and number < faulty and not self.saved:
                yield f"{check}: yes, but you gave no checkpoint of your own to compare"
            elif self.fault is None or number < min(faulty, _FIRST_OF_EVENTS):
                yield f"{check}: yes, {question}"
            elif faulty < _FIRST_OF_EVENTS:
                yield f"{check}: not looked at"
            else:
                yield f"{check}: yes, before line {self.fault.line}"

    def _sentences(self) -> Iterator[str]:
        if self.fault is not None and CHECKS.index(self.fault.check) < _FIRST_OF_EVENTS:
            yield "Nothing was counted, for no event was looked at."
            return
        r = self.remarks
        yield f"{_count(r.rounds, 'round')}, {r.open_rounds} of them open and so not proved."
        yield (
            f"{_count(r.shuffles, 'shuffle')}, {r.voided} of them voided, {r.house_only} with no "
            "player's bytes: these prove only that the cards were fixed before the deal."
        )
        yield (
            f"Seats left out of a shuffle: {r.left_out}; that did not open their digest: "
            f"{r.withheld}. Only the players concerned know whether the house is right about that."
        )
        yield (
            f"Nonces that had been revealed at this table before: {r.reused}. A reused nonce harms "
            "only the player who brought it."
        )
        yield f"Draws that did not take the top card: {r.not_top}."
        yield f"Cosignatures: {r.cosigned}."
        for key, times in self.cosigners.items():
            yield (
                f"Cosigned by {self.names[key]} {_count(times, 'time')}, last at size "
                f"{self.cosigned_upto[key]}, under the key {key}."
            )
        yield (
            "The table's key is the one you named."
            if r.pinned
            else "The table's key is the bundle's own word; name the key you know to be sure."
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
