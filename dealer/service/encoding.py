"""Encoding: each decided event becomes a leaf of the tree, a row of the log and an encoded event.

Canonical public part → salted commitment to the hidden part → leaf → tree; then the row, with the
hidden part encrypted, and the encoded event that the gateway makes frames of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from dealer.eventlog import Append, Row
from dealer.eventlog.encryption import NONCE_BYTES
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import CardDrawn, CardPeeked, CardsSwapped, Event, RoundOpened
from dealer.proof import codec
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.round_secret import RoundSecret

_DRAWN = CardDrawn.__name__, codec.SCHEMAS[CardDrawn.__name__]


class EncodedEvent(NamedTuple):
    """One event for the gateway: its leaf and type, and the JSON that only `seat` may see."""

    version: int
    leaf: str
    type: str
    seat: int | None = None
    private: str = ""


@dataclass(slots=True, eq=False)
class EncodedAppend(Append):
    """An append that `encode` fills: rows, checkpoints, and the events for subscribers."""

    rows: list[Row] = field(default_factory=list)
    checkpoints: list[tuple[int, str]] = field(default_factory=list)
    entries: list[EncodedEvent] = field(default_factory=list)


def encode(
    events: Sequence[Event],
    *,
    table: bytes,
    version: int,
    at: int,
    tree: Tree,
    secret: RoundSecret | NoRoundSecrets,
    nonces: bytes,
    sign: Callable[..., str],
    into: EncodedAppend,
) -> None:
    """Encode events that follow `version`, at millisecond `at`, and add them to `into`.

    `tree` gets their leaves; `nonces` has 12 random bytes for each event; `sign(size=…, root=…)`
    returns the note of a checkpoint.
    """
    rows, entries = into.rows, into.entries
    table_id = table.hex()
    swaps: list[CardsSwapped] = []
    for event in events:
        if not isinstance(event, CardsSwapped):
            break
        swaps.append(event)
    if swaps and isinstance(secret, RoundSecret):
        _encode_swaps(swaps, table_id, version, at, tree, secret, nonces, into)
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
        entries.append(encoded_event(number, leaf, kind, event, secret))
        if event.CHECKPOINT:
            into.checkpoints.append((number, sign(size=number, root=tree.root())))


def encode_draw(
    event: CardDrawn,
    *,
    table_id: str,
    version: int,
    at: int,
    tree: Tree,
    secret: RoundSecret,
    nonce: bytes,
    command: str | None,
    digest: bytes | None,
) -> tuple[Row, EncodedEvent]:
    """`encode` for one drawn card alone, the most frequent append: the same bytes.

    The face of the card must be known. `command` and `digest` are those of the row.
    """
    card = codec.quote(event.card or "")
    public, hidden = codec.encode_draw(event), f'{{"card":{card}}}'
    commitment = secret.event_commitment(version, hidden)
    kind, v = _DRAWN
    leaf = codec.leaf(
        at=at,
        commit=commitment.hex(),
        public=public,
        table=table_id,
        type=kind,
        v=v,
        version=version,
    )
    tree.append(leaf_hash(leaf.encode()))
    encrypted = secret.encrypt(version, hidden.encode(), nonce=nonce)
    row = Row(version, kind, v, at, public, commitment, encrypted, command, digest)
    slot = event.slot
    private = f'{{"card":{card},"salt":"{secret.slot_salt(slot).hex()}","slot":{slot}}}'
    return row, EncodedEvent(version, leaf, kind, event.seat, private)


def _hidden(
    event: Event, version: int, secret: RoundSecret | NoRoundSecrets, nonce: bytes
) -> tuple[bytes | None, bytes | None]:
    """The commitment to the hidden part, and that part encrypted."""
    if not isinstance(secret, RoundSecret):
        return None, None
    part = codec.encode_hidden(event)
    if part is not None:
        commitment = secret.event_commitment(version, part)
        return commitment, secret.encrypt(version, part.encode(), nonce=nonce)
    if isinstance(event, CardPeeked):
        return None, secret.encrypt(version, codec.encode_face(event).encode(), nonce=nonce)
    return None, secret.wrapped if isinstance(event, RoundOpened) else None


def _encode_swaps(
    swaps: Sequence[CardsSwapped],
    table_id: str,
    version: int,
    at: int,
    tree: Tree,
    secret: RoundSecret,
    nonces: bytes,
    into: EncodedAppend,
) -> None:
    """Encode the swaps of a shuffle by columns, at half the cost of one event after the other."""
    versions = range(version + 1, version + 1 + len(swaps))
    publics, parts = codec.encode_swaps(swaps)
    commitments = secret.event_commitments(version + 1, parts)
    texts = [part.encode() for part in parts]
    hidden = secret.encrypt_many(versions, texts, nonces=nonces[: NONCE_BYTES * len(swaps)])
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
    into.entries.extend(map(EncodedEvent, versions, leaves, repeat(kind)))


def encoded_event(
    version: int, leaf: str, type: str, event: Event, secret: RoundSecret | NoRoundSecrets
) -> EncodedEvent:
    """The encoded event, with the opening of the face that it reveals to one seat."""
    glimpse = event.private_face()
    if glimpse is None:
        return EncodedEvent(version, leaf, type)
    seat, slot, card = glimpse
    salt = secret.slot_salt(slot).hex()
    private = f'{{"card":{codec.quote(card)},"salt":"{salt}","slot":{slot}}}'
    return EncodedEvent(version, leaf, type, seat, private)
