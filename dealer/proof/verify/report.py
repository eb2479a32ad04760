"""The report of a verification: an answer for each check, then the counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dealer.errors import ProofFault

CHECKS = ("form", "heads", "saved", "secrets", "tape", "seals", "moves")
"""The checks in order; the last four are made for each event."""

_FIRST_OF_EVENTS = CHECKS.index("secrets")
_QUESTIONS = {
    "form": "every line is in canonical form",
    "heads": "the house signed these checkpoints, and they match the log",
    "saved": "the log agrees with the checkpoints you saved",
    "secrets": "secrets and players' bytes open their commitments",
    "tape": "every swap is the one that these bytes give",
    "seals": "every sealed or shown card is the one the shuffle put there",
    "moves": "every other event was legal, and each card was where it was taken from",
}
_TAPE_OF_PRACTICE = (
    "every swap after the first shuffle, which was laid out, is the one that these bytes give"
)
TITLES = {
    "form": "Each line is well formed",
    "heads": "The house has signed",
    "saved": "The log is the one you saw",
    "secrets": "Each commitment was opened correctly",
    "tape": "Each swap follows from the random bytes",
    "seals": "Each card is the sealed one",
    "moves": "Each move is legal",
}
"""The names of the checks for readers: the same on the command line and on the pages."""

_OF_CLOSED_ROUNDS = ("tape", "seals")
"""The checks that need the secret of a round."""

State = Literal["passed", "failed", "not checked"]


class Result(NamedTuple):
    """The result of a check, and a sentence about it without its capital letter and full stop."""

    check: str
    state: State
    sentence: str

    def __str__(self) -> str:
        end = "" if self.sentence.endswith(".") else "."
        return f"{self.state}: {TITLES[self.check]} ({self.check}): {self.sentence}{end}"


class Swap(NamedTuple):
    """One recomputed step of a shuffle in a closed round.

    `shuffle_index` numbers the shuffles of the round from 0. The step exchanged places `i` and `j`;
    `words` are the words of the tape that determined j, the last one accepted and those before it
    rejected (none in the first shuffle of a practice table); `cards` were at i and j before.
    """

    version: int
    round: int
    shuffle_index: int
    step: int
    i: int
    j: int
    words: tuple[int, ...]
    cards: tuple[str, str]


@dataclass(slots=True)
class Remarks:
    """Counts up to the end of the log, or up to the first fault.

    `shuffles` were started, `voided` of them voided; `house_only` were sealed without any player's
    nonce. `left_out` seats had sent no digest when the digests were closed, `withheld` seats did
    not open theirs. `reused` reveals had a nonce that any seat had revealed before in this log.
    `not_top` draws did not take the top card. `cosigned` is the number of valid cosignatures.
    `open_rounds` is counted only at the end of the log.
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


_OF_SOURCE = {
    "not given": "Whether they lay so is not checked: give that table's bundle as the source.",
    "open": "Whether they lay so is not checked: round 1 is still open.",
    "proved": "They lay so: the source proves it.",
}


@dataclass(slots=True)
class Practice:
    """The rule of a practice table, and whether a source proved it, see `practice`."""

    table: str
    round: int
    version: int
    root: str
    source: Literal["not given", "open", "proved"] = "not given"

    def sentences(self, *, faulty: bool) -> Iterator[str]:
        """What a report says of it; programs may look for how the first one begins."""
        yield (
            "practice: not a fair deal. By its rule the first shuffle laid out the cards of round "
            f"{self.round} of table {self.table} as they lay at version {self.version}."
        )
        if not faulty:
            yield _OF_SOURCE[self.source]


@dataclass(slots=True)
class Report:
    """The result: the first `fault` or None, with `remarks` and `swaps` up to that point.

    `seals` are the shuffles of closed rounds whose sealed cards were checked: one of a single card
    has no swap.

    `cosigners` are the numbers of valid cosignatures by the player's key in hex; `cosigned_upto` is
    the size of the newest checkpoint that each key cosigned, `names` the player's name by key.
    `notes` say what was undone in the file, see `bundle.restore`. `withheld_parts` are the versions
    of all events whose opened part is withheld; `withheld_cosigners` are the numbers of checkpoints
    with a signature by a player's key that no opening names, if a SeatTaken is withheld.
    `practice` is set for a practice table, which even without a fault is no fair deal, `broadcast`
    for one whose hands were shown by a link, so many seconds after each event.
    """

    fault: ProofFault | None = None
    remarks: Remarks = field(default_factory=Remarks)
    swaps: list[Swap] = field(default_factory=list)
    seals: int = 0
    origin: str = ""
    key: str = ""
    saved: int = 0
    cosigners: dict[str, int] = field(default_factory=dict)
    cosigned_upto: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    withheld_parts: list[int] = field(default_factory=list)
    withheld_cosigners: dict[str, int] = field(default_factory=dict)
    practice: Practice | None = None
    broadcast: int | None = None

    @property
    def ok(self) -> bool:
        """Whether no check found a fault."""
        return self.fault is None

    def results(self) -> list[Result]:
        """The result of each check, in order.

        A check has passed only if it was made of something: without a saved checkpoint, `saved` was
        not, and without a closed round neither the swaps nor the sealed cards were.
        """
        return [self._result(check) for check in CHECKS]

    def lines(self) -> list[str]:
        """The report for readers: a line for each check, then the remarks, then the notes."""
        notes = [f"note: {note}." for note in self.notes]
        return [*map(str, self.results()), *self._sentences(), *notes]

    def verdicts(self) -> list[str]:
        """Sentences for programs, which keep their form: as `lines`, with other words."""
        return [*self._answers(), *self._sentences()]

    def _result(self, check: str) -> Result:
        fault, number = self.fault, CHECKS.index(check)
        if fault is not None and check == fault.check:
            return Result(check, "failed", f"line {fault.line}: {fault.sentence}")
        faulty = len(CHECKS) if fault is None else CHECKS.index(fault.check)
        if number > faulty and faulty < _FIRST_OF_EVENTS:
            return Result(check, "not checked", "an earlier check failed")
        if check == "saved" and not self.saved:
            return Result(check, "not checked", "no saved checkpoint was given")
        if check in _OF_CLOSED_ROUNDS and not (self.swaps or self.seals):
            return Result(check, "not checked", "no shuffle of a closed round was reached")
        sentence = self._meaning(check)
        if fault is not None and number >= _FIRST_OF_EVENTS:
            sentence += f", up to line {fault.line}, where the replay stopped"
        elif check in _OF_CLOSED_ROUNDS and self.remarks.open_rounds:
            sentence += "; not checked in the round that is still open"
        return Result(check, "passed", sentence)

    def _meaning(self, check: str) -> str:
        of_practice = check == "tape" and self.practice is not None
        return _TAPE_OF_PRACTICE if of_practice else _QUESTIONS[check]

    def _answers(self) -> Iterator[str]:
        faulty = len(CHECKS) if self.fault is None else CHECKS.index(self.fault.check)
        for number, check in enumerate(CHECKS):
            question = self._meaning(check)
            if self.fault is not None and number == faulty:
                yield f"{check}: no, in line {self.fault.line}: {self.fault.sentence}"
            elif check == "saved" and number < faulty and not self.saved:
                yield f"{check}: yes, but you gave no saved checkpoint"
            elif self.fault is None or number < min(faulty, _FIRST_OF_EVENTS):
                yield f"{check}: yes, {question}"
            elif faulty < _FIRST_OF_EVENTS:
                yield f"{check}: not checked"
            else:
                yield f"{check}: yes, before line {self.fault.line}"

    def _sentences(self) -> Iterator[str]:
        if self.fault is not None and CHECKS.index(self.fault.check) < _FIRST_OF_EVENTS:
            yield "Nothing was counted: no event was checked."
            return
        if self.practice is not None:
            yield from self.practice.sentences(faulty=self.fault is not None)
        if self.broadcast is not None:
            yield (
                f"broadcast: by a rule of this table, hands were shown {self.broadcast} seconds "
                "after each event to those who had a link to its broadcast."
            )
        r = self.remarks
        # What a count means is said where there is something to count.
        still_open = f", {r.open_rounds} of them still open and so not proved"
        yield f"Rounds: {r.rounds}{still_open if r.open_rounds else ''}."
        house_only = ": these prove only that the cards were fixed before the deal"
        yield (
            f"Shuffles: {r.shuffles}, {r.voided} of them voided, {r.house_only} without any "
            f"player's bytes{house_only if r.house_only else ''}."
        )
        silent = " Only the players concerned know whether the house reports that correctly."
        yield (
            f"Seats left out of a shuffle: {r.left_out}; that did not reveal their bytes: "
            f"{r.withheld}.{silent if r.left_out or r.withheld else ''}"
        )
        reused = " A reused nonce harms only the player who sent it."
        yield f"Reused nonces: {r.reused}.{reused if r.reused else ''}"
        yield f"Draws that did not take the top card: {r.not_top}."
        yield f"Cosignatures: {r.cosigned}."
        for key, times in self.cosigners.items():
            yield (
                f"Cosigned by {self.names[key]} {times} time{'' if times == 1 else 's'}, "
                f"last at size {self.cosigned_upto[key]}, under the key {key}."
            )
        for key, times in self.withheld_cosigners.items():
            yield (
                f"Cosignatures that are not counted, since their player is withheld or unknown: "
                f"{times}, under the key {key}."
            )
        if self.withheld_parts:
            yield (
                f"Names or texts withheld: {len(self.withheld_parts)} (of the versions "
                f"{', '.join(map(str, self.withheld_parts))}). Nothing else of the log is missing."
            )
        yield (
            "The table's key is the one you gave."
            if r.pinned
            else "The table's key was taken from the bundle; give the key you know to be sure."
        )
