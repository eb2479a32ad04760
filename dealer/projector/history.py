"""Reads a table's history: a range of its events, and its state at any version.

Hidden faces are decrypted with the secret of their round. A closed round has published its secret;
without the secret of the open round, its faces are None.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from dealer.errors import DatabaseDamaged, UnknownTable
from dealer.eventlog.encryption import RoundCipher
from dealer.eventlog.schema import TABLE_ID
from dealer.eventlog.stored_form import decode_public
from dealer.game.events import Event, SeatGivenUp
from dealer.game.state import Player, Table, evolve
from dealer.projector.changes import StreamId, StreamKey
from dealer.proof.codec import decode
from dealer.proof.keys import RoundKeys

_RANGE = (
    "SELECT version, type, schema, at, public, commitment, hidden FROM event"
    " WHERE stream = ? AND version BETWEEN ? AND ? ORDER BY version"
)
_BACKWARDS = (
    "SELECT version, type, schema, at, public, hidden FROM event"
    " WHERE stream = ? AND version <= ? ORDER BY version DESC LIMIT ?"
)
_CHUNK = 256
_SECRETS = "SELECT public FROM event WHERE stream = ? AND type = 'RoundClosed'"
_STREAM = "SELECT id, version FROM stream WHERE {} = ?"
_NOTHING: dict[str, Any] = {}


def read_events(
    connection: Connection,
    stream: StreamKey,
    *,
    first: int,
    last: int,
    secrets: Mapping[int, bytes],
) -> Iterator[tuple[int, int, Event]]:
    """(version, at, event) of versions first … last; hidden parts only with the round's secret.

    Raises UnknownEvent, and DatabaseDamaged if a hidden part is missing or cannot be decrypted.
    """
    ciphers: dict[int, RoundCipher] = {}
    for row in connection.exec_driver_sql(_RANGE, (stream.id, first, last)):
        version, kind, schema, at, public, commitment, hidden = row
        kind, public = decode_public(kind, public, hidden)
        members = json.loads(public)
        part = _NOTHING
        # The hidden part of RoundOpened is the encrypted secret, and has no commitment.
        if commitment is not None and (secret := secrets.get(members["round"])) is not None:
            if hidden is None:
                raise DatabaseDamaged(
                    f"The hidden part of version {version} is missing in the log; restore the "
                    "database from a backup."
                )
            cipher = ciphers.get(members["round"])
            if cipher is None:
                keys = RoundKeys(table=stream.table, round=members["round"], secret=secret)
                cipher = ciphers[members["round"]] = RoundCipher(
                    table=stream.table, seal_key=keys.seal_key
                )
            part = json.loads(cipher.decrypt(version, hidden))
        yield version, at, decode(kind, schema, members, part)


def public_state(connection: Connection, stream: StreamId, version: int) -> Table:
    """The table's public state at `version`, rebuilt from the beginning of its open round.

    Between rounds only the version is set: a fold needs no more. Raises UnknownEvent, and
    DatabaseDamaged if a version is missing.
    """
    rows = list(_of_open_round(connection, stream, version))
    table = Table(version=version - len(rows))
    for found, kind, schema, at, public, hidden in reversed(rows):
        if found != table.version + 1:
            raise DatabaseDamaged(
                f"A version between {found} and {version} is missing in the log; restore the "
                "database from a backup."
            )
        kind, public = decode_public(kind, public, hidden)
        event = decode(kind, schema, json.loads(public), _NOTHING)
        if isinstance(event, SeatGivenUp):  # who may have sat down before the round opened
            table.seats.setdefault(event.seat, Player("", None, 0))
        evolve(table, event, at)
    return table


def _of_open_round(
    connection: Connection, stream: StreamId, version: int
) -> Sequence[Sequence[Any]]:
    """The events back to the RoundOpened of the open round at `version`, newest first; or none."""
    rows: list[Sequence[Any]] = []
    while True:
        before = version - len(rows)
        found = connection.exec_driver_sql(_BACKWARDS, (stream, before, _CHUNK)).fetchall()
        for row in found:
            if row[1] == "RoundClosed":
                return []
            rows.append(row)
            if row[1] == "RoundOpened":
                return rows
        if len(found) < _CHUNK:
            return []


def state_at(
    connection: Connection,
    table: bytes,
    version: int | None = None,
    *,
    secrets: Mapping[int, bytes] | None = None,
) -> Table:
    """The state of the table, by its 16-byte id, at `version`, by default the newest.

    Faces are known for every round that is closed now and for those whose S is in `secrets`.
    Raises UnknownTable if there is no such table or version, and the errors of `read_events`.
    """
    found = connection.exec_driver_sql(
        _STREAM.format(TABLE_ID[connection.dialect.name]), (table,)
    ).fetchone()
    head = 0 if found is None else found[1]
    last = head if version is None else version
    if found is None or not 1 <= last <= head:
        raise UnknownTable(f"The log has no version {last} of this table.")
    published = map(json.loads, connection.exec_driver_sql(_SECRETS, (found[0],)).scalars())
    known = {members["round"]: bytes.fromhex(members["secret"]) for members in published}
    known |= secrets or {}
    state = Table()
    stream = StreamKey(found[0], table)
    for _, at, event in read_events(connection, stream, first=1, last=last, secrets=known):
        evolve(state, event, at)
    return state
