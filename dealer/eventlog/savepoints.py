"""SQL table `table_savepoint`: the newest savepoint of each long game table.

A savepoint is the state of a table at one of its versions with the right edge of its Merkle tree,
encrypted. It is a shortcut, never an authority: a table is loaded from it only if the rest of the
log leads from its tree to the root that the newest checkpoint signs. Nothing needs these rows; all
of them may be deleted at any time, and the next load of a table takes longer.

A state is the members of `Table` as MessagePack. `encode_table` and `decode_table` are inverse up
to sharing of objects. The order of dicts is kept, since it is the order in which seats, stacks and
digests are shown; sets are sorted. `FORMAT` counts up with every change of the encoding, and
`fold_code` identifies the code that makes a state of events: a state of another format, or of other
code, is not decoded.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dealer.errors import DatabaseDamaged
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.protocols import Connection
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.schema import TABLE_ID
from dealer.game import cards, events, moves, rules, shuffle, stacks, state
from dealer.game.rules import Rules
from dealer.game.state import Table
from dealer.proof import codec
from dealer.proof.tree import HASH_BYTES

FORMAT = 4

CODE_BYTES = 8

_encode = msgspec.msgpack.Encoder(enc_hook=dict).encode  # of mappings that cannot be changed
_decode = msgspec.msgpack.Decoder(Table).decode


def encode_table(table: Table) -> bytes:
    round_ = table.round
    if round_ is not None:
        ordered: dict[str, Any] = {
            "withheld": sorted(round_.withheld),
            "shown": sorted(round_.shown),
            "known": {seat: sorted(slots) for seat, slots in round_.known.items()},
        }
        table = replace(table, round=replace(round_, **ordered))
    removed: Any = sorted(table.removed)
    return _encode(replace(table, removed=removed))


def decode_table(data: bytes) -> Table:
    """A new table with the state of `encode_table`; raises ValueError for any other bytes."""
    table = _decode(data)
    table.rules = Rules.read(table.rules.given)
    if table.round is not None:
        # Each face is the object in `opened`: a string of its own for each takes 50 bytes more.
        codes = {code: code for code in table.round.opened}
        faces = table.round.faces
        table.round.faces = [None if face is None else codes.get(face, face) for face in faces]
    return table


@cache
def fold_code() -> bytes:
    """8 bytes that differ if the code differs that decodes events and applies them."""
    digest = sha256()
    own = sys.modules[__name__]
    for module in (cards, events, moves, rules, shuffle, stacks, state, codec, own):
        digest.update(Path(module.__file__ or "").read_bytes())
    return digest.digest()[:CODE_BYTES]


# The SQL table

# A log that was rewound to an older state may get a savepoint of a lower version, so that the newer
# one is replaced whatever its version. None is added to a table that has left the log.
_PUT = (
    "INSERT INTO table_savepoint (stream, version, format, code, sealed)"
    " SELECT s.id, ?, ?, ?, ? FROM stream s WHERE s.{} = ? AND s.version >= ?"
    " AND NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = s.id)"
    " ON CONFLICT (stream) DO UPDATE SET version = excluded.version, format = excluded.format,"
    " code = excluded.code, sealed = excluded.sealed"
)
_READ = (
    "SELECT p.version, p.format, p.code, p.sealed FROM table_savepoint p"
    " JOIN stream s ON s.id = p.stream WHERE s.{} = ?"
)


class SavedTable(NamedTuple):
    """The content of a savepoint: a table after its first `version` events.

    `leaf` is the hash of the last one's leaf and `edge` the right edge of the tree, hashes of 32
    bytes. `c1_root` is the root of the last checkpoint C1, or empty; `wrapped` is the stored form
    of the open round's secret, empty without a round; `state` is what `encode_table` gives.
    """

    version: int
    leaf: bytes
    edge: list[bytes]
    c1_root: bytes
    wrapped: bytes
    state: bytes

    def table(self) -> Table:
        """A new table with this state; raises ValueError for a state that is not one."""
        return decode_table(self.state)


_decode_saved = msgspec.msgpack.Decoder(SavedTable).decode


def put(
    connection: Connection, *, keys: HouseKeys, table: bytes, saved: SavedTable, nonce: bytes
) -> bool:
    """Replace the savepoint of a table; returns False: the work is complete.

    `keys` are those that the table is signed under; `nonce` is 12 random bytes. Nothing is written
    if the log has not that many events of the table, or if it is archived.
    """
    code = fold_code()
    sealed = keys.seal_savepoint(
        _encode(saved), table=table, version=saved.version, format=FORMAT, code=code, nonce=nonce
    )
    parameters = (saved.version, FORMAT, code, sealed, table, saved.version)
    connection.exec_driver_sql(_PUT.format(TABLE_ID[connection.dialect.name]), parameters)
    return False


async def read(log: ReadOnlyLog, keys: HouseKeys, table: bytes) -> SavedTable | None:
    """The savepoint of a table; None if there is none, or if other code wrote it.

    Raises DatabaseDamaged if it is not what the house stored for this table and version.
    """
    rows = await log.fetch(_READ.format(TABLE_ID[log.dialect]), (table,))
    if not rows:
        return None
    version, format_, code, sealed = rows[0]
    if (format_, code) != (FORMAT, fold_code()):
        return None
    plain = keys.open_savepoint(sealed, table=table, version=version, format=format_, code=code)
    try:
        saved = _decode_saved(plain)
    except ValueError:
        raise DatabaseDamaged("The savepoint of this table cannot be decoded.") from None
    if saved.version != version or len(saved.leaf) != HASH_BYTES:
        raise DatabaseDamaged("The savepoint of this table is not of this version.")
    return saved
