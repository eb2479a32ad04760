"""SQL table `table_savepoint`: the newest savepoint of each long game table.

A savepoint is the state of a table at one of its versions with the right edge of its Merkle tree,
encrypted. It is a shortcut, never an authority: a table is loaded from it only if the rest of the
log leads from its tree to the root that the newest checkpoint signs. Nothing needs these rows; all
of them may be deleted at any time, and the next load of a table takes longer.

A state is plain values in a fixed order, as MessagePack. `encode_table` and `decode_table` are
inverse up to sharing of objects. The order of dicts is kept, since it is the order in which seats,
stacks and digests are shown; sets are sorted. `FORMAT` counts up with every change of the structs
below, and `fold_code` identifies the code that makes a state of events: a state of another format,
or of other code, is not decoded.
"""

from __future__ import annotations

import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import Column, Connection, Integer, LargeBinary

from dealer.errors import DatabaseDamaged
from dealer.eventlog.encryption import HouseKeys
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.schema import TABLE_ID, Key, Number, define_table
from dealer.game import cards, events, moves, rules, shuffle, stacks, state
from dealer.game.moves import CardFrom, CardsMoved, Moves
from dealer.game.rules import Rules
from dealer.game.state import Player, Round, SeatHolder, Shuffle, Table
from dealer.game.state import Table as State
from dealer.proof import codec
from dealer.proof.tree import HASH_BYTES

FORMAT = 3

CODE_BYTES = 8


class _Player(Struct, array_like=True, forbid_unknown_fields=True):
    name: str
    key: bytes | None
    taken_at: int
    bot: bool


class _Shuffle(Struct, array_like=True, forbid_unknown_fields=True):
    k: int
    stack: str
    n: int
    algorithm: str
    steps: int
    started_at: int
    digests: dict[int, bytes]
    before: tuple[int, ...]
    nonces: dict[int, bytes]
    closed_version: int
    closed_at: int
    swaps_hidden: bool


class _Moved(Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    at: int
    source: str
    to: str
    drawn: bool
    revealed: bool
    cards: list[tuple[int, int]]


class _Moves(Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    last: _Moved | None = None
    passed: dict[int, _Moved] = {}


class _Round(Struct, array_like=True, forbid_unknown_fields=True):
    number: int
    opened: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int
    commitment: bytes
    stacks: dict[str, list[int]]
    k: int
    shuffle: _Shuffle | None
    early_digests: dict[int, bytes]
    withheld: list[int]
    faces: list[str | None]
    sealed: bytearray
    drawable: bytearray
    shown: list[int]
    known: dict[int, list[int]]
    moves: _Moves = _Moves()  # absent in states of earlier code: nothing can be taken back


class _Table(Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    at: int
    origin: str
    key: bytes
    rules: dict[str, Any]
    seats: dict[int, _Player]
    host_seat: int | None
    round: _Round | None
    round_versions: list[int]
    closed: bool
    moved: list[tuple[int, int, int, int]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Table).decode


def encode_table(table: Table) -> bytes:
    members = _members(_Table, table)
    members["rules"] = dict(table.rules.given)
    members["seats"] = {
        seat: _Player(**_members(_Player, player)) for seat, player in table.seats.items()
    }
    members["round"] = None if table.round is None else _round(table.round)
    members["moved"] = [(*earlier, *later) for earlier, later in table.moved.items()]
    return _encode(_Table(**members))


def decode_table(data: bytes) -> Table:
    """A new table with the state of `encode_table`; raises ValueError for any other bytes."""
    found = _decode(data)
    members = _members(_Table, found)
    members["rules"] = Rules.read(found.rules)
    members["seats"] = {
        seat: Player(**_members(_Player, player)) for seat, player in found.seats.items()
    }
    members["round"] = None if found.round is None else _decoded_round(found.round)
    members["moved"] = {SeatHolder(a, b): SeatHolder(c, d) for a, b, c, d in found.moved}
    return Table(**members)


def _members(encoded: type[Struct], one: object) -> dict[str, Any]:
    """The members of a state or of its encoded form, which have the same names."""
    return {name: getattr(one, name) for name in encoded.__struct_fields__}


def _round(round_: Round) -> _Round:
    members = _members(_Round, round_)
    if round_.shuffle is not None:
        members["shuffle"] = _Shuffle(**_members(_Shuffle, round_.shuffle))
    members["withheld"] = sorted(round_.withheld)
    members["shown"] = sorted(round_.shown)
    members["known"] = {seat: sorted(slots) for seat, slots in round_.known.items()}
    last, passed = round_.moves.last, round_.moves.passed
    members["moves"] = _Moves(
        last=None if last is None else _moved(last),
        passed={seat: _moved(cards) for seat, cards in passed.items()},
    )
    return _Round(**members)


def _moved(moved: CardsMoved) -> _Moved:
    return _Moved(**_members(_Moved, moved))


def _decoded_round(found: _Round) -> Round:
    members = _members(_Round, found)
    if found.shuffle is not None:
        members["shuffle"] = Shuffle(**_members(_Shuffle, found.shuffle))
    # Each face is the object in `opened`: a string of its own for each slot takes 50 bytes more.
    codes = {code: code for code in found.opened}
    members["faces"] = [None if face is None else codes.get(face, face) for face in found.faces]
    members["withheld"], members["shown"] = set(found.withheld), set(found.shown)
    members["known"] = {seat: set(slots) for seat, slots in found.known.items()}
    last, passed = found.moves.last, found.moves.passed
    members["moves"] = Moves(
        last=None if last is None else _decoded_moved(last),
        passed={seat: _decoded_moved(cards) for seat, cards in passed.items()},
    )
    return Round(**members)


def _decoded_moved(found: _Moved) -> CardsMoved:
    members = _members(_Moved, found)
    members["cards"] = [CardFrom(*card) for card in found.cards]
    return CardsMoved(**members)


@cache
def fold_code() -> bytes:
    """8 bytes that differ where the code differs that decodes events and applies them."""
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
    of the open round's secret, empty without a round; `state` is that of `encode_table`.
    """

    version: int
    leaf: bytes
    edge: list[bytes]
    c1_root: bytes
    wrapped: bytes
    state: bytes

    def table(self) -> State:
        """A new table with this state; raises ValueError for a state that is not one."""
        return decode_table(self.state)


_decode_saved = msgspec.msgpack.Decoder(SavedTable).decode

table_savepoint = define_table(
    "table_savepoint",
    Column("stream", Key, primary_key=True, autoincrement=False),
    Column("version", Number, nullable=False),
    Column("format", Integer, nullable=False),
    Column("code", LargeBinary(CODE_BYTES), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)


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
