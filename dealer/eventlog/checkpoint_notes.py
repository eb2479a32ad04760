"""Rules for storing signed checkpoints, shared by both databases."""

from __future__ import annotations

from dealer.errors import DatabaseDamaged
from dealer.eventlog.rows import Append, Conflict


def conflict_if_missing(request: Append, version: int) -> Conflict | None:
    """The result of a request without rows for a table at `version`; None if its events exist.

    A stored checkpoint without its events would make the table look altered, or outlive it.
    """
    return None if all(size <= version for size, _ in request.checkpoints) else Conflict(version)


def merge_signatures(stored: str, note: str) -> str:
    """One note with the signature lines of both; two processes may add cosignatures at once.

    Of two lines by the same key the first is kept: a note may have one signature by each key.
    Raises DatabaseDamaged if the texts differ: a table has one root for each size.
    """
    text, _, lines = stored.partition("\n\n")
    other_text, _, other_lines = note.partition("\n\n")
    if text != other_text:
        raise DatabaseDamaged(
            "The log has a checkpoint of the same size with another root: the database was "
            "altered; restore it from a backup."
        )
    signatures: dict[str, str] = {}
    for line in filter(None, (lines + other_lines).split("\n")):
        signatures.setdefault(line.rpartition(" ")[0], line)
    return text + "\n\n" + "".join(line + "\n" for line in signatures.values())
