"""What is written on one line of the archive, and what one asks of the archivist.

Only bytes and numbers: nothing here knows a card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgspec

from dealer.errors import DatabaseDamaged, DatabaseError
from dealer.proof import codec


class Row(NamedTuple):
    """One event as it is kept; `version` counts from 1 within its table.

    `at` is in milliseconds, `public` the canonical JSON verbatim, `commitment` 32 bytes or None
    without a hidden part, `hidden` sealed. `command` and its `digest` stand on the first event of
    an append.
    """

    version: int
    type: str
    schema: int
    at: int
    public: str
    commitment: bytes | None = None
    hidden: bytes | None = None
    command: str | None = None
    digest: bytes | None = None

    def members(self) -> dict[str, Any]:
        """The public part as an object; raises DatabaseDamaged if it is none."""
        try:
            return _object(self.public)
        except ValueError:
            raise DatabaseDamaged(
                f"The event of version {self.version} is not as it was written; restore the "
                "database from a backup."
            ) from None


_object = msgspec.json.Decoder(dict[str, Any]).decode


def leaf_of(table: bytes, row: Row) -> str:
    """The leaf's text, from the row as it is kept; `table` is the table's id of 16 bytes."""
    return codec.leaf(
        at=row.at,
        commit=None if row.commitment is None else row.commitment.hex(),
        public=row.public,
        table=table.hex(),
        type=row.type,
        v=row.schema,
        version=row.version,
    )


@dataclass(slots=True, eq=False)
class Chain:
    """Appends of which each was decided on what the one before it would write.

    Once one of them is not written none after it is, even if its expected version should be there
    by then: it would be another's.
    """

    broken: bool = False


@dataclass(slots=True, eq=False)
class Append:
    """A wish to add `rows`, versions `expected + 1` …, to a table that stands at `expected`.

    `table` is 16 bytes. `checkpoints` are (size, note) and come in with the rows; a note that is
    already there keeps its signatures and takes the new ones. Without rows `expected` is not
    looked at: only the notes are added, if the table has the events that they cover. `tag` is the
    caller's own and comes back untouched. `chain` is shared by the appends that build on each
    other.
    """

    table: bytes
    expected: int
    rows: Sequence[Row]
    checkpoints: Sequence[tuple[int, str]] = ()
    tag: object = None
    chain: Chain | None = None


class Appended(NamedTuple):
    """Done and on disk; the table now stands at `version`."""

    version: int


class Conflict(NamedTuple):
    """Nothing was written: the table stands at `version` and not as expected.

    0 is where there is no such table, or it is archived.
    """

    version: int


class Known(NamedTuple):
    """Nothing was written: the append with this command id stands in the log from `version` on.

    Compare `digest` with the command's own: another one means the id was used twice.
    """

    version: int
    digest: bytes | None


class Locked(NamedTuple):
    """Not decided yet: another transaction holds the table; give the store the request again.

    `doubtful` where an earlier attempt, whose answer was lost, may have written it.
    """

    doubtful: bool = False


Result: TypeAlias = Appended | Conflict | Known | DatabaseError
