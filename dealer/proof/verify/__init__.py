"""Was the game fair? Everything that a bundle says is checked here, and nothing of it believed.

The checks come in a fixed order, `form`, `heads`, `saved`, and then each event in turn with
`secrets`, `tape`, `seals` or `moves`, and stop at the first fault; each module says what its checks
ask, so that another verifier can name the same fault. Only the standard library, an Ed25519 and the
house's tape, shuffle, names of stacks and codes of cards are used; the rules of the game are
written once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dealer.errors import ProofFault
from dealer.proof.checkpoint import table_of
from dealer.proof.verify.books import Books, secrets_of
from dealer.proof.verify.form import Progress, read
from dealer.proof.verify.heads import check_heads, check_saved
from dealer.proof.verify.replay import replay
from dealer.proof.verify.report import CHECKS, Remarks, Report, Swap

__all__ = ["CHECKS", "Remarks", "Report", "Swap", "verify"]

_PROGRESS_EVERY = 256


def verify(
    lines: Iterable[str | bytes],
    *,
    key: bytes | str | None = None,
    saved: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """What is true of a bundle's lines (without their newlines), whatever stands in them.

    `key` is the table's 32 bytes, or their hex, as the user knows them; `saved` are notes that the
    user kept. `progress(done, total)` is called now and then; a line counts once when it is read
    and once when it is replayed. Nothing is raised: a fault is in the report.
    """
    bundle = list(lines)
    report = Report(saved=len(saved))
    pinned = key.hex() if isinstance(key, bytes) else key
    total = 2 * len(bundle)
    try:
        parts = read(bundle, _steps(progress, 0, total))
        report.origin, report.key = parts.origin, parts.key
        roots = check_heads(parts, pinned, report)
        report.remarks.pinned = pinned is not None
        check_saved(parts, saved)
        books = Books(
            table=bytes.fromhex(table_of(parts.origin)),
            roots=roots,
            secrets=secrets_of(parts.leaves),
            remarks=report.remarks,
            swaps=report.swaps,
        )
        replay(parts.leaves, books, _steps(progress, len(bundle), total))
    except ProofFault as fault:
        report.fault = fault
    if progress is not None:
        progress(total, total)
    return report


def _steps(progress: Callable[[int, int], None] | None, before: int, total: int) -> Progress:
    def step(done: int) -> None:
        if progress is not None and done % _PROGRESS_EVERY == 0:
            progress(before + done, total)

    return step
