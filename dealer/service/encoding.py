"""Encoding: each decided event becomes a leaf of the tree and a record of the log.

Canonical public part → salted commitment to the hidden part → leaf → tree; then the record, with
the hidden part encrypted, and the face that it shows to one seat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dealer.eventlog import EventRecord
from dealer.eventlog.encryption import NONCE_BYTES
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import CardDrawn, CardPeeked, CardsSwapped, Event, RoundOpened
from dealer.proof import codec
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.round_secret import RoundSecret


def encode(
    events: Sequence[Event],
    *,
    table: str,
    version: int,
    at: int,
    tree: Tree,
    secret: RoundSecret | NoRoundSecrets,
    nonces: bytes,
    sign: Callable[[int, bytes], str],
    checkpoints: list[tuple[int, str]],
) -> list[EventRecord]:
    """The records of events that follow `version` of the table with this id, at millisecond `at`.

    `tree` gets their leaves; `nonces` has 12 random bytes for each event; `sign(size, root)`
    returns the note of a checkpoint, which is added to `checkpoints`.
    """
    records: list[EventRecord] = []
    swaps = 0
    if events and isinstance(events[0], CardsSwapped) and isinstance(secret, RoundSecret):
        records = _encode_swaps(events, table, version, at, tree, secret, nonces)
        swaps = len(records)
    for offset, event in enumerate(events[swaps:], swaps):
        number = version + offset + 1
        kind = type(event).__name__
        commitment: bytes | None = None
        hidden: bytes | None = None
        seat: int | None = None
        private = ""
        nonce = nonces[NONCE_BYTES * offset : NONCE_BYTES * (offset + 1)]
        if isinstance(event, CardDrawn) and event.card and isinstance(secret, RoundSecret):
            # The same as below, without calls: every draw and every card of a deal.
            card, seat, slot = codec.quote(event.card), event.seat, event.slot
            public = (
                f'{{"from":{codec.quote(event.source)},"round":{event.round},"seat":{seat},'
                f'"slot":{slot}}}'
            )
            part = f'{{"card":{card}}}'
            commitment = secret.event_commitment(number, part)
            hidden = secret.encrypt(number, part.encode(), nonce=nonce)
            private = f'{{"card":{card},"salt":"{secret.slot_salt(slot).hex()}","slot":{slot}}}'
        else:
            public = codec.encode_public(event)
            if isinstance(secret, RoundSecret):
                commitment, hidden = _hidden(event, number, secret, nonce)
            seat, private = private_part(event, secret)
        leaf = codec.leaf(
            at=at,
            commit=None if commitment is None else commitment.hex(),
            public=public,
            table=table,
            type=kind,
            v=codec.SCHEMAS[kind],
            version=number,
        )
        tree.add(leaf.encode())
        records.append(
            EventRecord(
                number, kind, codec.SCHEMAS[kind], at, public, commitment, hidden, None, None,
                leaf, seat, private, event,
            )
        )  # fmt: skip
        if event.CHECKPOINT:
            checkpoints.append((number, sign(number, tree.root())))
    return records


def _hidden(
    event: Event, version: int, secret: RoundSecret, nonce: bytes
) -> tuple[bytes | None, bytes | None]:
    """The commitment to the hidden part, and that part encrypted."""
    part = codec.encode_hidden(event)
    if part is not None:
        commitment = secret.event_commitment(version, part)
        return commitment, secret.encrypt(version, part.encode(), nonce=nonce)
    if isinstance(event, CardPeeked):
        return None, secret.encrypt(version, codec.encode_face(event).encode(), nonce=nonce)
    return None, secret.wrapped if isinstance(event, RoundOpened) else None


def _encode_swaps(
    events: Sequence[Event],
    table: str,
    version: int,
    at: int,
    tree: Tree,
    secret: RoundSecret,
    nonces: bytes,
) -> list[EventRecord]:
    """The records of the swaps that `events` begins with, by columns: half the time of `encode`."""
    swaps: list[CardsSwapped] = []
    for event in events:
        if not isinstance(event, CardsSwapped):
            break
        swaps.append(event)
    versions = range(version + 1, version + 1 + len(swaps))
    publics, parts = codec.encode_swaps(swaps)
    commitments = secret.event_commitments(version + 1, parts)
    texts = [part.encode() for part in parts]
    hidden = secret.encrypt_many(versions, texts, nonces=nonces[: NONCE_BYTES * len(swaps)])
    kind = CardsSwapped.__name__
    v = codec.SCHEMAS[kind]
    # The text of `codec.leaf`, of which here only the parts between the braces differ.
    start, end = f'{{"at":{at},"commit":"', f',"table":"{table}","type":"{kind}","v":{v},"version":'
    leaves = [
        f'{start}{commitment.hex()}","public":{public}{end}{number}}}'
        for number, public, commitment in zip(versions, publics, commitments, strict=True)
    ]
    tree.extend([leaf_hash(leaf.encode()) for leaf in leaves])
    return [
        EventRecord(number, kind, v, at, public, commitment, part, None, None, leaf, None, "", swap)
        for number, public, commitment, part, leaf, swap in zip(
            versions, publics, commitments, hidden, leaves, swaps, strict=True
        )
    ]


def private_part(event: Event, secret: RoundSecret | NoRoundSecrets) -> tuple[int | None, str]:
    """The seat that an event shows a face to, and the JSON of its opening; (None, "") if none."""
    glimpse = event.private_face()
    if glimpse is None:
        return None, ""
    seat, slot, card = glimpse
    salt = secret.slot_salt(slot).hex()
    return seat, f'{{"card":{codec.quote(card)},"salt":"{salt}","slot":{slot}}}'
