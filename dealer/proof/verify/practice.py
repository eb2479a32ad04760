"""Practice tables: a rule that says whose cards were laid out, and what its source proves of them.

- The rule `practice` of TableOpened, where there is one, has `table` (32 hex digits), `round` and
  `version` (from 1) and `root` (64 hex digits), and no other member; else the fault is `tape`,
  line 1. A log with it is no fair deal, and its report says so.
- In its first shuffle (round 1, k 0) the j of a swap is the one that the swap commits to, any place
  that the step allows; there is exactly one, or the fault is `tape`. All else is checked as ever.
- Given the source's bundle (faults `tape`, line 1): the log has the rule; the source has no fault,
  is of that table, has closed that round, has the root at a checkpoint over the round's close, and
  the version is of the round. Then the layout, which takes as many events as `_length`, must have
  put every card where it lay in the source, and turned up the same ones: else `moves`, at the
  layout's last line, or at that of the log. It is not checked while round 1 is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dealer.errors import ProofFault
from dealer.game.shuffle import full
from dealer.game.stacks import DECK, seat_of
from dealer.proof import canonical
from dealer.proof.checkpoint import table_of
from dealer.proof.verify.file_kinds import named
from dealer.proof.verify.form import Leaf, Parts, Progress, read
from dealer.proof.verify.heads import check_heads
from dealer.proof.verify.ledger import Ledger, ledger_of
from dealer.proof.verify.replay import replay
from dealer.proof.verify.report import Practice, Report

RULE = "practice"
NOT_FAIR = (
    "This is a practice table: the cards of its first round were laid out as in another round, "
    "which is no fair deal."
)
_FORM = re.compile(
    r'\{"root":"[0-9a-f]{64}","round":[1-9][0-9]*,"table":"[0-9a-f]{32}","version":[1-9][0-9]*\}'
)


class _Placement(NamedTuple):
    """Where the cards of the open round lie: codes by stack, bottom first, and those shown."""

    stacks: dict[str, list[str | None]]
    shown: set[str | None]


def practice_of(rules: Mapping[str, Any]) -> Practice | None:
    """The rule of a table; None without one. Raises ProofFault if it is malformed."""
    if RULE not in rules:
        return None
    if not _FORM.fullmatch(canonical.encode(rules[RULE]).decode()):
        raise _fault("The rule `practice` must name table, round, version and root of a source.")
    return Practice(**rules[RULE])


def comparing(
    source: Iterable[str | bytes], ledger: Ledger, practice: Practice | None, leaves: Sequence[Leaf]
) -> Progress:
    """A step of the replay of these leaves that compares the layout with its source."""
    if practice is None:
        raise _fault(
            "This table names no source: it has no rule `practice`, and its cards must be its own."
        )
    wanted = _in_source(list(source), practice)
    opened = next((leaf.version for leaf in leaves if leaf.type == "RoundOpened"), len(leaves))
    last = min(opened + _length(wanted), len(leaves))

    def compare(done: int) -> None:
        if done != last:
            return
        if ledger.round is not None and ledger.round.keys is None:
            practice.source = "open"
        elif _placement(ledger) != wanted:
            raise ProofFault(
                "moves", done, "The cards were not laid out as they lie in the source."
            )
        else:
            practice.source = "proved"

    return compare


def _in_source(lines: list[str | bytes], practice: Practice) -> _Placement:
    """Where the cards lay at the version that the rule names, as the source's bundle proves."""
    found: list[_Placement] = []

    def see(done: int) -> None:
        if done == practice.version and ledger.round and ledger.round.number == practice.round:
            found.append(_placement(ledger))

    report = Report()
    try:
        parts = read(lines, _quiet)
        roots = check_heads(parts, None, report)
        report.practice = practice_of(parts.leaves[0].public["rules"])
        ledger = ledger_of(parts, roots, report)
        replay(parts.leaves, ledger, see)
    except ProofFault as fault:
        sentence = named(fault, lines, ()).sentence
        raise _fault(f"The source has a fault itself, in line {fault.line}: {sentence}") from fault
    _check_source(parts, roots, practice)
    if not found:
        raise _fault(f"Version {practice.version} of the source is not of round {practice.round}.")
    return found[0]


def _check_source(parts: Parts, roots: Mapping[int, bytes], practice: Practice) -> None:
    if table_of(parts.origin) != practice.table:
        raise _fault("The source is of another table than the rule names.")
    closed = [
        leaf.version
        for leaf in parts.leaves
        if leaf.type == "RoundClosed" and leaf.public["round"] == practice.round
    ]
    if not closed:
        raise _fault(f"The source has no closed round {practice.round}.")
    if not any(size >= closed[0] and root.hex() == practice.root for size, root in roots.items()):
        raise _fault("The house signed no such root of the source after that round.")


def _placement(ledger: Ledger) -> _Placement:
    round_ = ledger.round
    if round_ is None:
        return _Placement({}, set())
    stacks = {
        name: [round_.face(card) for card in cards]
        for name, cards in round_.stacks.items()
        if cards
    }
    return _Placement(stacks, {round_.face(slot) for slot in round_.shown if round_.on_table(slot)})


def _length(placement: _Placement) -> int:
    """How many events lay these cards out, after RoundOpened to the last SeatLeft."""
    hands = sum(seat_of(name) is not None for name in placement.stacks)
    cards = sum(map(len, placement.stacks.values()))
    placed = cards - len(placement.stacks.get(DECK, ()))
    return 2 + full(cards) + 1 + placed + len(placement.shown) + hands


def _quiet(done: int) -> None:
    """The source's progress is not reported."""


def _fault(sentence: str) -> ProofFault:
    return ProofFault("tape", 1, sentence)
