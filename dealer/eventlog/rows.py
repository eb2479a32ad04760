"""The records of the log: events, append requests and their results; and checkpoints' notes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import astuple

from dealer.errors import DatabaseDamaged, DatabaseError, DealerError
from dealer.game.events import OPENED_TYPES, Event
from dealer.proof import codec
from dealer.proof.canonical import dump
from dealer.proof.opened import opened_commitment, opening, separate

EVERYONE = 0
"""The seat, in a record, of what is beside the leaf for all to see."""


class EventRecord(msgspec.Struct):
    """One event of a table: the same object is written, published and projected.

    The first nine members are the columns of its row, as they are read. `version` counts from 1
    within its table, `at` is in milliseconds, `public` the canonical JSON of what all may know, the
    opened part among it, `commitment` 32 bytes or None without a hidden or opened part. `hidden` is
    the hidden part encrypted, or the salt of the opened one. `command` and its `digest` are set on
    the first event of an append. `leaf` is its leaf's text, `private` the JSON that only `seat` may
    see, or with the seat `EVERYONE` the opening of its opened part, and `event` itself is known to
    the process that decided it.

    A record of this process is made by `service.commands.executor.encode`, stored by the writer in
    the columns of `stored_form`, and published by `CommandProcessor.on_result`. This then blanks
    the columns that only the writer needed: `public` is "", and `commitment`, `hidden`, `command`
    and `digest` are None. So it is in the ring, the feed and the projector. A record from the log
    has its columns as long as it lives; its readers add `leaf`, and `seat` and `private` if they
    know the secret.
    """

    # A struct, because one is made for every event: its constructor is no call of Python. For the
    # same reason it is blanked without a method.
    version: int
    type: str
    schema: int
    at: int
    public: str
    commitment: bytes | None = None
    hidden: bytes | None = None
    command: str | None = None
    digest: bytes | None = None
    leaf: str = ""
    seat: int | None = None
    private: str = ""
    event: Event | None = None

    def columns_as_read(self) -> tuple[Any, ...]:
        """The columns of its row, before `stored_form`, in the order of `ROW_COLUMNS`."""
        return astuple(self)[: len(ROW_COLUMNS)]

    def members(self) -> dict[str, Any]:
        """What all may know as an object; raises DatabaseDamaged if it is not a JSON object."""
        try:
            return _decode_object(self.public)
        except ValueError:
            raise altered(self) from None

    def beside(self) -> tuple[int | None, str]:
        """`EVERYONE` and the opening of the opened part as JSON; (None, "") if there is none."""
        if self.type not in OPENED_TYPES or self.hidden is None:
            return None, ""
        _, part = separate(self.type, self.members())
        return EVERYONE, opening(part, self.hidden)


def altered(row: EventRecord) -> DatabaseDamaged:
    """The error for a row that is not as the house wrote it."""
    return DatabaseDamaged(
        f"The event of version {row.version} was altered in the database; restore the database "
        "from a backup."
    )


_decode_object = msgspec.json.Decoder(dict[str, Any]).decode

ROW_COLUMNS = EventRecord.__struct_fields__[:9]
"""The members that are columns of a row, in their order."""

COLUMNS = ", ".join(ROW_COLUMNS)


def leaf_of(table: bytes, row: EventRecord) -> str:
    """The leaf's text of a stored row; `table` is the table's id of 16 bytes.

    Raises DatabaseDamaged if the opened part is not the one that the leaf commits to.
    """
    public, commitment = row.public, row.commitment
    if row.type in OPENED_TYPES:
        members = row.members()
        rest, part = separate(row.type, members)
        opened = None
        if part:
            salt = row.hidden or b""
            opened = opened_commitment(table=table, version=row.version, salt=salt, part=part)
        if dump(members) != public or opened != commitment:
            raise altered(row)
        public = dump(rest)
    return codec.leaf(
        at=row.at,
        commit=None if commitment is None else commitment.hex(),
        public=public,
        table=table.hex(),
        type=row.type,
        v=row.schema,
        version=row.version,
    )


@dataclass(slots=True, eq=False)
class Chain:
    """Appends each of which was decided on the state after the one before it.

    Once one of them is not written, none after it is, even if the table reaches its expected
    version: that version would be another process's event.
    """

    broken: bool = False


def _resolve_future(append: Append, result: Result | DealerError) -> None:
    if append.future is None:
        return
    if isinstance(result, DealerError):
        reject(append.future, result)
    else:
        resolve(append.future, result)


class Append(msgspec.Struct, eq=False):
    """A request to add `rows`, versions `expected + 1` …, to a table at version `expected`.

    `table` is 16 bytes. `checkpoints` are (size, note) and are written in the same transaction; a
    note that is already stored keeps its signatures and gets the new ones. Without rows `expected`
    is ignored: only the notes are added, if the table has the events that they cover. `chain` is
    shared by appends that build on each other.

    `on_result` is called once, on the loop, with the append and its result, when it is durable or
    was not written. By default it gives the result to `future`, if a caller waits for it.
    """

    table: bytes
    expected: int
    rows: Sequence[EventRecord]
    checkpoints: Sequence[tuple[int, str]] = ()
    chain: Chain | None = None
    future: asyncio.Future[Result] | None = None
    on_result: Callable[[Any, Result | DealerError], None] = _resolve_future

    @property
    def end(self) -> int:
        """The table's version after this append."""
        return self.expected + len(self.rows)


def resolve(future: asyncio.Future[Any], result: object) -> None:
    """Set the result unless the caller has cancelled the future."""
    if not future.done():
        future.set_result(result)


def reject(future: asyncio.Future[Any], error: Exception) -> None:
    """Set the exception unless the caller has cancelled the future."""
    if not future.done():
        future.set_exception(error)


class Appended(msgspec.Struct, frozen=True):
    """Written and durable; the table is now at `version`."""

    version: int


class Conflict(msgspec.Struct, frozen=True):
    """Nothing was written: the table is at `version`, not at the expected one.

    0 if there is no such table, or if it is archived.
    """

    version: int


class Duplicate(msgspec.Struct, frozen=True):
    """Nothing was written: the append with this command id is in the log from `version` on.

    Compare `digest` with the command's own: another one means that the id was used twice.
    """

    version: int
    digest: bytes | None


Result: TypeAlias = Appended | Conflict | Duplicate | DatabaseError


def conflict_if_missing(request: Append, version: int) -> Conflict | None:
    """The result of a request without rows for a table at `version`; None if its events exist.

    A stored checkpoint without its events would make the table look altered, or outlive it.
    """
    return None if all(size <= version for size, _ in request.checkpoints) else Conflict(version)


def merge_signatures(stored: str, note: str) -> str:
    """One note with the signature lines of both; two processes may add cosignatures at once.

    If two lines are by one key, the first is kept: a note may have one signature by each key.
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
