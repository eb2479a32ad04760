"""Writing down what was decided: each event becomes a leaf of the tree, a row and an entry.

The way of an event: canonical public part → salted commitment of its hidden part → leaf → tree;
then its row, with the hidden part sealed, and the entry that the gateway makes frames of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import NamedTuple

from dealer.eventlog import Row
from dealer.eventlog.sealing import NONCE_BYTES
from dealer.game.decide import NoSecret
from dealer.game.events import (
    CardPeeked,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    Event,
    RoundClosed,
    RoundOpened,
    TableClosed,
)
from dealer.game.view import entitled
from dealer.proof import codec
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.round_secret import RoundSecret

CHECKPOINTED = (EntropyClosed, DeckSealed, RoundClosed, TableClosed)
"""After these the house signs the root: who was there can prove what they were told."""


class Entry(NamedTuple):
    """One event ready to be framed: its leaf, and what one seat may see beside it."""

    version: int
    leaf: str
    seat: int | None = None
    private: str = ""


class Recorded(NamedTuple):
    """What an append consists of: rows for the log, entries and checkpoints for the table."""

    rows: list[Row]
    entries: list[Entry]
    notes: list[tuple[int, str]]


def write(
    events: Sequence[Event],
    *,
    table: bytes,
    version: int,
    at: int,
    tree: Tree,
    secret: RoundSecret | NoSecret,
    nonces: bytes,
    sign: Callable[..., str],
    into: Recorded,
) -> None:
    """Write down events that come after `version`, at millisecond `at`, and add them to `into`.

    `tree` gets their leaves; `nonces` are 12 random bytes for each event; `sign(size=…, root=…)`
    gives the note of a checkpoint.
    """
    rows, entries, notes = into
    table_id = table.hex()
    swaps: list[CardsSwapped] = []
    for event in events:
        if not isinstance(event, CardsSwapped):
            break
        swaps.append(event)
    if swaps and isinstance(secret, RoundSecret):
        _write_swaps(swaps, table_id, version, at, tree, secret, nonces, into)
    for offset, event in enumerate(events[len(swaps) :], len(swaps)):
        number = version + offset + 1
        kind = type(event).__name__
        public = codec.encode_public(event)
        nonce = nonces[NONCE_BYTES * offset : NONCE_BYTES * (offset + 1)]
        commitment, hidden = _hidden(event, number, secret, nonce)
        leaf = codec.leaf(
            at=at,
            commit=None if commitment is None else commitment.hex(),
            public=public,
            table=table_id,
            type=kind,
            v=codec.SCHEMAS[kind],
            version=number,
        )
        tree.append(leaf_hash(leaf.encode()))
        rows.append(Row(number, kind, codec.SCHEMAS[kind], at, public, commitment, hidden))
        entries.append(entry(number, leaf, event, secret))
        if isinstance(event, CHECKPOINTED):
            notes.append((number, sign(size=number, root=tree.root())))


def _hidden(
    event: Event, version: int, secret: RoundSecret | NoSecret, nonce: bytes
) -> tuple[bytes | None, bytes | None]:
    """The commitment to what the public part leaves out, and that part itself, sealed."""
    if not isinstance(secret, RoundSecret):
        return None, None
    part = codec.encode_hidden(event)
    if part is not None:
        commitment = secret.event_commitment(version, part)
        return commitment, secret.seal(version, part.encode(), nonce=nonce)
    if isinstance(event, CardPeeked):
        return None, secret.seal(version, codec.encode_face(event).encode(), nonce=nonce)
    return None, secret.wrapped if isinstance(event, RoundOpened) else None


def _write_swaps(
    swaps: Sequence[CardsSwapped],
    table_id: str,
    version: int,
    at: int,
    tree: Tree,
    secret: RoundSecret,
    nonces: bytes,
    into: Recorded,
) -> None:
    """The swaps of a shuffle, column by column: half the cost of one event after the other."""
    versions = range(version + 1, version + 1 + len(swaps))
    publics, parts = codec.encode_swaps(swaps)
    commitments = secret.event_commitments(version + 1, parts)
    texts = [part.encode() for part in parts]
    hidden = secret.seal_many(versions, texts, nonces=nonces[: NONCE_BYTES * len(swaps)])
    kind = CardsSwapped.__name__
    v = codec.SCHEMAS[kind]
    leaves = [
        codec.leaf(
            at=at,
            commit=commitment.hex(),
            public=public,
            table=table_id,
            type=kind,
            v=v,
            version=number,
        )
        for number, public, commitment in zip(versions, publics, commitments, strict=True)
    ]
    tree.extend([leaf_hash(leaf.encode()) for leaf in leaves])
    into.rows.extend(
        map(
            Row,
            versions,
            repeat(kind),
            repeat(v),
            repeat(at),
            publics,
            commitments,
            hidden,
        )
    )
    into.entries.extend(map(Entry, versions, leaves))


def entry(version: int, leaf: str, event: Event, secret: RoundSecret | NoSecret) -> Entry:
    """The entry of a written event, with the opening of the face that it shows to one seat."""
    glimpse = entitled(event)
    if glimpse is None:
        return Entry(version, leaf)
    seat, slot, card = glimpse
    salt = secret.slot_salt(slot).hex()
    private = f'{{"card":{codec.quote(card)},"salt":"{salt}","slot":{slot}}}'
    return Entry(version, leaf, seat, private)
