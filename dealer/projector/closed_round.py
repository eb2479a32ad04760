"""Folds a closed round as a whole, so that each of its rows is made once.

The secret of a closed round is known before its first event is read: swaps and moves are written
with their faces, stacks as they are at the round's end. What was written while the round was open
is replaced. A round can have any number of events, so it can be folded in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dealer.eventlog import EventRecord
from dealer.eventlog.keys import RoundCipher
from dealer.game import events
from dealer.game.events import HIDDEN_TYPES, Event
from dealer.game.stacks import hand
from dealer.game.state import Table
from dealer.projector.changes import Changes, RoundEnded, StreamKey
from dealer.projector.fold import Folding
from dealer.projector.models import MoveRow, SwapRow
from dealer.proof.codec import SCHEMAS, decode
from dealer.proof.round_keys import RoundKeys

_NOTHING: dict[str, Any] = {}


# Most events are of these, and are read without an object for each. One of an earlier schema is
# read as all others are.
_SWAP = ("CardsSwapped", SCHEMAS["CardsSwapped"])
_DRAW = ("CardDrawn", SCHEMAS["CardDrawn"])


class _Swap(msgspec.Struct):
    i: int
    k: int
    round: int
    step: int


class _Place(msgspec.Struct):
    j: int


class _Draw(msgspec.Struct, rename={"source": "from"}):
    round: int
    seat: int
    slot: int
    source: str


class _Face(msgspec.Struct):
    card: str


_read_object = msgspec.json.Decoder(dict[str, Any]).decode
_read_swap = msgspec.json.Decoder(_Swap).decode
_read_place = msgspec.json.Decoder(_Place).decode
_read_draw = msgspec.json.Decoder(_Draw).decode
_read_face = msgspec.json.Decoder(_Face).decode


class ClosedRound(Folding):
    """The fold of one closed round in its complete state: faces and places are known.

    `opened` is the version of RoundOpened, `last` the row of RoundClosed, and `after` the version
    up to which the read models have been written. Raises UnknownEvent, or ValueError, KeyError or
    TypeError, as `add` does, for what the server does not write.
    """

    def __init__(self, stream: StreamKey, *, opened: int, last: EventRecord, after: int) -> None:
        super().__init__(stream, Table(version=opened - 1))
        self.opened, self.closed, self.after = opened, last.version, after
        end = last.event or _decode(last, _NOTHING)
        if not isinstance(end, events.RoundClosed):
            raise ValueError(f"version {last.version} does not close a round")
        self._end = end
        keys = RoundKeys(table=stream.table, round=end.round, secret=end.secret)
        self._cipher = RoundCipher(table=stream.table, seal_key=keys.seal_key)

    @property
    def complete(self) -> bool:
        """Whether every event was folded, RoundClosed among them."""
        return self.table.version == self.closed

    def add(self, rows: Sequence[EventRecord], into: Changes) -> None:
        """Fold the next rows, and add the changes to `into`; after an error nothing is added.

        After an error this object must not be used again.
        """
        for version, row in enumerate(rows or [None], self.version):
            if row is None or row.version != version:
                raise ValueError(f"version {version} is missing")
        self.changes = Changes()
        hidden = self._decrypt(rows)
        index = 0
        while index < len(rows):
            row = rows[index]
            if (row.type, row.schema) == _SWAP:
                index = self._fold_swaps(rows, hidden, index)
            elif (row.type, row.schema) == _DRAW:
                index = self._fold_draws(rows, hidden, index)
            else:
                part = hidden.get(row.version)
                event = row.event
                if event is None:
                    event = _decode(row, _read_object(part) if part else _NOTHING)
                self._fold_event(row, event)
                index += 1
        into.extend(self.changes)

    def _decrypt(self, rows: Sequence[EventRecord]) -> dict[int, bytes]:
        """The hidden parts by version, without the secret of RoundOpened, and without salts.

        The rows of this process have none any more.
        """
        stored = {
            row.version: row.hidden
            for row in rows
            if row.commitment is not None and row.type in HIDDEN_TYPES
        }
        parts = [part for part in stored.values() if part is not None]
        if len(parts) < len(stored):
            missing = next(version for version, part in stored.items() if part is None)
            raise ValueError(f"the hidden part of version {missing} is missing")
        return dict(zip(stored, self._cipher.decrypt_many(list(stored), parts), strict=True))

    def _fold_event(self, row: EventRecord, event: Event) -> None:
        opens, closes = isinstance(event, events.RoundOpened), row.version == self.closed
        if opens != (self.table.round is None) or closes != isinstance(event, events.RoundClosed):
            raise ValueError("a round begins with RoundOpened and ends with RoundClosed")
        if not isinstance(event, _IN_A_SHUFFLE):
            self._require_seal()
        if closes:
            self._write_stacks()
        self.apply(event, row.at)
        if opens and self.round.number != self._end.round:
            raise ValueError("the secret is another round's")

    def _require_seal(self) -> None:
        """Raise ValueError between a swap and the seal: there the public order is another one."""
        round_ = self.table.round
        if round_ is None or round_.shuffle is None:
            return
        if tuple(round_.cards(round_.shuffle.stack)) != round_.shuffle.before:
            raise ValueError("the cards were swapped and not sealed")

    def _fold_swaps(self, rows: Sequence[EventRecord], hidden: dict[int, bytes], start: int) -> int:
        """Fold the swaps from `start` on; the index of the event after them."""
        round_, stream = self.round, self.stream.id
        cards = round_.stacks[self.shuffle.stack]
        faces = [face for card in cards if (face := round_.face(card)) is not None]
        if len(faces) < len(cards):
            raise ValueError("a card has no face")
        number, k = round_.number, self.shuffle.k
        swaps = self.changes.rows(SwapRow)
        index = start
        # `swapped` and `evolve` in one loop, because most events are swaps. Left out is `table.at`,
        # which no fold reads. `faces` change places with the cards: each is looked up once.
        while index < len(rows) and (rows[index].type, rows[index].schema) == _SWAP:
            row = rows[index]
            version = row.version
            if isinstance(event := row.event, events.CardsSwapped):  # this process wrote it
                swap: events.CardsSwapped | _Swap = event
                j = event.j
            else:
                swap, j = _read_swap(row.public), _read_place(hidden[version]).j
            i = swap.i
            if (swap.round, swap.k) != (number, k) or j is None:
                raise ValueError("a swap of another shuffle")
            swaps.append(SwapRow(stream, number, k, swap.step, version, i, j, faces[i], faces[j]))
            faces[i], faces[j] = faces[j], faces[i]
            cards[i], cards[j] = cards[j], cards[i]
            index += 1
        self.table.version += index - start
        return index

    def _fold_draws(self, rows: Sequence[EventRecord], hidden: dict[int, bytes], start: int) -> int:
        """Fold the draws from `start` on; the index of the event after them."""
        round_, stream = self.round, self.stream.id
        self._require_seal()
        number, faces, shown = round_.number, round_.faces, round_.shown
        hands: dict[int, tuple[str, list[int]]] = {}
        moves = self.changes.rows(MoveRow)
        index = start
        # `moved` and `evolve` in one loop. Left out is what only `decide` and views read:
        # `table.at`, who knows the card (`known`), and what can be taken back (`round.moves`).
        while index < len(rows) and (rows[index].type, rows[index].schema) == _DRAW:
            row = rows[index]
            if isinstance(event := row.event, events.CardDrawn):
                draw: events.CardDrawn | _Draw = event
                card = event.card
            else:
                draw, card = _read_draw(row.public), _read_face(hidden[row.version]).card
            slot, source = draw.slot, draw.source
            face = faces[slot]
            if draw.round != number or face != card:
                raise ValueError("a draw of another round, or of another card than was sealed")
            if draw.seat not in hands:
                name = hand(draw.seat)
                hands[draw.seat] = name, round_.stacks.setdefault(name, [])
            target, held = hands[draw.seat]
            cards = round_.stacks[source]
            place = len(cards) - 1 if cards[-1] == slot else cards.index(slot)
            del cards[place]
            move = MoveRow(
                stream, row.version, row.at, number, "CardDrawn", source, place, target,
                len(held), slot, face, int(slot in shown),
            )  # fmt: skip
            held.append(slot)
            moves.append(move)
            index += 1
        self.table.version += index - start
        return index

    def _write_stacks(self) -> None:
        round_, stream = self.round, self.stream.id
        for stack, cards in round_.stacks.items():
            key = (stream, round_.number, stack)
            if self.opened <= self.after:  # then there are rows of the open round
                self.changes.shorten(key, len(cards))
            self.changes.put_cards(key, cards, first=0, opened=round_.opened, faces=round_.faces)

    def swapped(self, event: events.CardsSwapped, at: int) -> None:
        round_, i, j = self.round, event.i, event.j
        if j is None:
            raise ValueError("a swap needs both places")
        cards = round_.stacks[self.shuffle.stack]
        face_i, face_j = round_.face(cards[i]), round_.face(cards[j])
        if face_i is None or face_j is None:
            raise ValueError("a card has no face")
        stream, version = self.stream.id, self.version
        swap = SwapRow(stream, event.round, event.k, event.step, version, i, j, face_i, face_j)
        self.changes.add(swap)

    def round_closed(self, event: events.RoundClosed, at: int) -> None:
        stream = self.stream.id
        self.changes.update(RoundEnded(self.version, at, event.secret.hex(), stream, event.round))
        self.changes.update(self.reached(self.version))


# What may come between the first swap of a shuffle and its seal.
_IN_A_SHUFFLE = (
    events.CardsSwapped,
    events.DeckSealed,
    events.SeatTaken,
    events.SeatLeft,
    events.SeatVacated,
    events.HostTransferred,
    events.NoteAdded,
    events.EntropyCommitted,
    events.EntropyRevealed,
)

ClosedRound.RULES = Folding.RULES | {
    events.CardShown: Folding.shown,  # the earlier moves have the face already
    events.CardsSwapped: ClosedRound.swapped,
    events.RoundClosed: ClosedRound.round_closed,
}


def _decode(row: EventRecord, hidden: dict[str, Any]) -> Event:
    return decode(row.type, row.schema, _read_object(row.public), hidden)
