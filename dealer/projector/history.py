"""Reading a table's past: any stretch of it, and how the table stood at any version.

A face that the log hides is opened with the secret of its round. A closed round has published
it; an open round's is the house's, and without it its faces are None.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from dealer.errors import DatabaseDamaged, UnknownTable
from dealer.eventlog.sealing import RoundSeal
from dealer.game.events import Event
from dealer.game.state import Table, evolve
from dealer.projector.fold import believe
from dealer.projector.happened import Number, Stream
from dealer.proof.codec import decode
from dealer.proof.keys import RoundKeys

_STRETCH = (
    "SELECT version, type, schema, at, public, commitment, hidden FROM event"
    " WHERE stream = ? AND version BETWEEN ? AND ? ORDER BY version"
)
_BACKWARDS = (
    "SELECT version, type, schema, at, public FROM event"
    " WHERE stream = ? AND version <= ? ORDER BY version DESC LIMIT ?"
)
_AT_ONCE = 256
_OPENED = (
    "SELECT version, public FROM event WHERE stream = ? AND version < ? AND type = 'RoundOpened'"
    " ORDER BY version DESC LIMIT 1"
)
_SECRETS = "SELECT public FROM event WHERE stream = ? AND type = 'RoundClosed'"
_STREAM = "SELECT id, version FROM stream WHERE table_id = ?"
_NOTHING: dict[str, Any] = {}


def stretch(
    connection: Connection,
    stream: Stream,
    *,
    first: int,
    last: int,
    secrets: Mapping[int, bytes],
) -> Iterator[tuple[int, int, Event]]:
    """(version, at, event) of versions first … last, whole where `secrets` has the round's S.

    Raises UnknownEvent, and DatabaseDamaged where a hidden part is gone or does not open.
    """
    seals: dict[int, RoundSeal] = {}
    for row in connection.exec_driver_sql(_STRETCH, (stream.number, first, last)):
        version, kind, schema, at, public, commitment, hidden = row
        told = json.loads(public)
        part = _NOTHING
        # What RoundOpened keeps beside it is the house's, and has no commitment.
        if commitment is not None and (secret := secrets.get(told["round"])) is not None:
            if hidden is None:
                raise DatabaseDamaged(
                    f"The hidden part of version {version} is gone from the log; restore the "
                    "database from a backup."
                )
            seal = seals.get(told["round"])
            if seal is None:
                keys = RoundKeys(table=stream.table, round=told["round"], secret=secret)
                seal = seals[told["round"]] = RoundSeal(table=stream.table, seal_key=keys.seal_key)
            part = json.loads(seal.unseal(version, hidden))
        yield version, at, decode(kind, schema, told, part)


def whole_round(
    connection: Connection, stream: Stream, closed: int, secret: bytes
) -> list[tuple[int, Event]]:
    """The events of the round that closes at version `closed`, with all that they hid."""
    row = connection.exec_driver_sql(_OPENED, (stream.number, closed)).fetchone()
    if row is None:
        return []
    told = json.loads(row[1])
    return [
        (version, event)
        for version, _, event in stretch(
            connection, stream, first=row[0], last=closed - 1, secrets={told["round"]: secret}
        )
    ]


def since_round_opened(connection: Connection, stream: Number, version: int) -> Table:
    """The table at `version` as the public knows it, from its open round's beginning on.

    Between rounds there is nothing in it but the version: that is all that a fold goes on from.
    """
    rows = list(_of_open_round(connection, stream, version))
    table = Table(version=version - len(rows))
    for _, kind, schema, at, public in reversed(rows):
        event = decode(kind, schema, json.loads(public), _NOTHING)
        believe(table, event, at)
    return table


def _of_open_round(connection: Connection, stream: Number, version: int) -> Sequence[Sequence[Any]]:
    """The events back to the RoundOpened of the round that is open at `version`; else none."""
    rows: list[Sequence[Any]] = []
    while True:
        before = version - len(rows)
        found = connection.exec_driver_sql(_BACKWARDS, (stream, before, _AT_ONCE)).fetchall()
        for row in found:
            if row[1] == "RoundClosed":
                return []
            rows.append(row)
            if row[1] == "RoundOpened":
                return rows
        if len(found) < _AT_ONCE:
            return []


def state_at(
    connection: Connection,
    table: bytes,
    version: int | None = None,
    *,
    secrets: Mapping[int, bytes] | None = None,
) -> Table:
    """How the table, by its 16-byte id, stood at `version`, by default now.

    Faces are there for every round that is closed today and for those whose S is in `secrets`.
    Raises UnknownTable where there is no such table or version, and what `stretch` raises.
    """
    found = connection.exec_driver_sql(_STREAM, (table,)).fetchone()
    head = 0 if found is None else found[1]
    last = head if version is None else version
    if found is None or not 1 <= last <= head:
        raise UnknownTable(f"The log has no version {last} of this table.")
    published = map(json.loads, connection.exec_driver_sql(_SECRETS, (found[0],)).scalars())
    known = {told["round"]: bytes.fromhex(told["secret"]) for told in published}
    known |= secrets or {}
    state = Table()
    stream = Stream(found[0], table)
    for _, at, event in stretch(connection, stream, first=1, last=last, secrets=known):
        evolve(state, event, at)
    return state
