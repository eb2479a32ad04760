"""Verifier of bundles: checks every line of a bundle and trusts none of it.

The checks are made in a fixed order: `form`, `heads`, `saved`, then for each event `secrets`,
`tape`, `seals` or `moves`. The first fault ends the verification. Each module specifies its checks,
so that an independent verifier reports the same fault. The verifier uses only the standard library,
Ed25519, and the game's tape, shuffle, stack names and card codes; it has its own implementation of
the rules of the game.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dealer.errors import ProofFault
from dealer.proof.bundle import LAST_NEWLINE
from dealer.proof.verify.file_kinds import named
from dealer.proof.verify.form import Progress, read
from dealer.proof.verify.heads import check_heads, check_saved
from dealer.proof.verify.ledger import ledger_of
from dealer.proof.verify.practice import comparing, practice_of
from dealer.proof.verify.replay import replay
from dealer.proof.verify.report import CHECKS, Remarks, Report, Swap

__all__ = ["CHECKS", "Remarks", "Report", "Swap", "verify"]

_PROGRESS_EVERY = 256


def verify(
    lines: Iterable[str | bytes],
    *,
    key: bytes | str | None = None,
    saved: Sequence[str] = (),
    notes: Sequence[str] = (),
    source: Iterable[str | bytes] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Verify a bundle, given as arbitrary lines without their newlines.

    `key` is the table's key as the user knows it, 32 bytes or hex; `saved` are checkpoints (notes)
    that the user kept; `notes` say what `bundle.restore` undid in a file; `source` is the bundle of
    the table that a practice table was laid out from. `progress(done, total)`
    reports progress; each line counts twice, when it is parsed and when it is replayed. Faults are
    not raised but returned in the report.
    """
    bundle = list(lines)
    report = Report(saved=len(saved), notes=list(notes))
    pinned = key.hex() if isinstance(key, bytes) else key
    total = 2 * len(bundle)
    try:
        parts = read(bundle, _steps(progress, 0, total))
        report.origin, report.key = parts.origin, parts.key
        report.withheld_parts = [leaf.version for leaf in parts.withheld]
        roots = check_heads(parts, pinned, report)
        report.remarks.pinned = pinned is not None
        check_saved(parts, saved)
        rules = parts.leaves[0].public["rules"]
        report.practice, seconds = practice_of(rules), rules.get("broadcast")
        if type(seconds) is int and 0 <= seconds <= 86_400:
            report.broadcast = seconds
        ledger = ledger_of(parts, roots, report)
        steps = [_steps(progress, len(bundle), total)]
        if source is not None:
            steps.append(comparing(source, ledger, report.practice, parts.leaves))
        try:
            replay(parts.leaves, ledger, *steps)
        finally:
            report.seals = ledger.seals
    except ProofFault as fault:
        report.fault = named(fault, bundle, notes)
        if report.fault is not fault:  # no bundle, or not the whole of it: nothing was repaired
            report.notes = [note for note in notes if note != LAST_NEWLINE]
    if progress is not None:
        progress(total, total)
    return report


def _steps(progress: Callable[[int, int], None] | None, before: int, total: int) -> Progress:
    def step(done: int) -> None:
        if progress is not None and done % _PROGRESS_EVERY == 0:
            progress(before + done, total)

    return step
