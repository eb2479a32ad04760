"""Folds rounds that are closed as a whole, from rows of the log, for a rebuild.

The secret of a closed round is known before its first event is read, so that each row is made once,
with its faces: `dealer.projector.fold` writes a move without its face and completes it at the
close. Whatever is not as the server writes it (a swap without a seal, an unreadable row) is left to
that fold, event by event, which decides what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dealer.errors import DealerError
from dealer.eventlog.encryption import RoundCipher
from dealer.game import events
from dealer.game.events import Event
from dealer.game.stacks import hand
from dealer.game.state import Table
from dealer.projector.changes import Changes
from dealer.projector.fold import Folding
from dealer.projector.types import StreamKey
from dealer.proof.codec import SCHEMAS, decode
from dealer.proof.keys import RoundKeys

ClosedRow = tuple[int, str, int, int, str, bool, bytes | None]
"""(version, type, schema, at, public, whether the leaf commits to a hidden part, hidden)."""

COLUMNS = "version, type, schema, at, public, commitment IS NOT NULL, hidden"

_NOTHING: dict[str, Any] = {}


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


def fold_closed_rounds(
    stream: StreamKey, after: int, rows: Sequence[ClosedRow], into: Changes
) -> int:
    """Add to `into` the rows of the closed rounds, and of what is between them, at the beginning.

    `rows` follow version `after`, at which no round is open. Returns the version that was reached,
    at which no round is open either: the round after it is not closed within `rows`, or is unusual.
    """
    folding = _ClosedRounds(stream, Table(version=after))
    types = [row[1] for row in rows]
    done = 0
    while done < len(rows):
        end = _end_of_part(types, done)
        if end is None or not folding.add(rows[done:end], into):
            break
        done = end
    if done:
        into.update("table", folding.table_row(after + done))
    return after + done


def _end_of_part(types: list[str], start: int) -> int | None:
    """The end of the round that begins at `start`, or of the events before the next round."""
    sought = "RoundClosed" if types[start] == "RoundOpened" else "RoundOpened"
    try:
        found = types.index(sought, start)
    except ValueError:
        return None if sought == "RoundClosed" else len(types)
    return found + 1 if sought == "RoundClosed" else found


class _ClosedRounds(Folding):
    """The fold with the complete state: faces are known, and stacks are written at the end.

    A ValueError means that the server does not write such a round.
    """

    REMEMBERS = False  # stacks are written at the end

    def add(self, rows: Sequence[ClosedRow], into: Changes) -> bool:
        """Fold a round, or events outside of rounds; False, and nothing is added, if impossible."""
        self.changes = Changes()
        before = self._opened_rounds, self._closed_at
        first = self.table.version + 1
        try:
            if (rows[0][0], rows[-1][0]) != (first, first + len(rows) - 1):
                raise ValueError("a version is missing")
            if rows[0][1] == "RoundOpened":
                self._fold_round(rows)
            else:
                for row in rows:
                    self._fold_event(row, _decode(row, _NOTHING))
        except (DealerError, ValueError, KeyError, IndexError, TypeError):
            self._opened_rounds, self._closed_at = before
            return False
        into.extend(self.changes)
        return True

    def _fold_round(self, rows: Sequence[ClosedRow]) -> None:
        opened, closed = _decode(rows[0], _NOTHING), _decode(rows[-1], _NOTHING)
        if not isinstance(opened, events.RoundOpened) or not isinstance(closed, events.RoundClosed):
            raise ValueError("a round begins with RoundOpened and ends with RoundClosed")
        if opened.round != closed.round:
            raise ValueError("the secret is that of another round")
        hidden = self._decrypt(rows, round=closed.round, secret=closed.secret)
        self._fold_event(rows[0], opened)
        index, last = 1, len(rows) - 1
        while index < last:
            row = rows[index]
            if row[1] == "CardsSwapped":
                index = self._fold_swaps(rows, hidden, index)
            elif row[1] == "CardDrawn":
                index = self._fold_draws(rows, hidden, index)
            else:
                part = hidden.get(row[0])
                self._fold_event(row, _decode(row, _read_object(part) if part else _NOTHING))
                index += 1
        self._write_all_stacks()
        self._fold_event(rows[last], closed)

    def _decrypt(self, rows: Sequence[ClosedRow], *, round: int, secret: bytes) -> dict[int, bytes]:
        """The hidden parts by version; those of other types than swaps and moves stay secret."""
        keys = RoundKeys(table=self.stream.table, round=round, secret=secret)
        cipher = RoundCipher(table=self.stream.table, seal_key=keys.seal_key)
        stored = {row[0]: row[6] for row in rows if row[5]}
        parts = [part for part in stored.values() if part is not None]
        if len(parts) < len(stored):
            raise ValueError("a hidden part is missing")
        return dict(zip(stored, cipher.decrypt_many(list(stored), parts), strict=True))

    def _fold_event(self, row: ClosedRow, event: Event) -> None:
        self.table.version = row[0] - 1
        self.apply(event, row[3])

    def _fold_swaps(self, rows: Sequence[ClosedRow], hidden: dict[int, bytes], start: int) -> int:
        """Fold the swaps from `start` on, up to the seal that follows them; its index."""
        round_, stream = self.round, self.stream.number
        cards = round_.stacks[self.shuffle.stack]
        faces = [round_.face(card) for card in cards]
        if None in faces:
            raise ValueError("a card has no face")
        number, k = round_.number, self.shuffle.k
        swaps = self.changes.added.setdefault("swaps", [])
        index = start
        while rows[index][1] == "CardsSwapped":
            version, _, schema, _, public, _, _ = rows[index]
            swap, j = _read_swap(public), _read_place(hidden[version]).j
            i = swap.i
            if (swap.round, swap.k, schema) != (number, k, SCHEMAS["CardsSwapped"]):
                raise ValueError("a swap of another shuffle")
            swaps.append((stream, number, k, swap.step, version, i, j, faces[i], faces[j]))
            faces[i], faces[j] = faces[j], faces[i]
            cards[i], cards[j] = cards[j], cards[i]
            index += 1
        if rows[index][1] != "DeckSealed":
            raise ValueError("the public state has another order after these swaps")
        return index

    def _fold_draws(self, rows: Sequence[ClosedRow], hidden: dict[int, bytes], start: int) -> int:
        """Fold the draws from `start` on; the index of the event after them."""
        round_, stream = self.round, self.stream.number
        number, faces, shown = round_.number, round_.faces, round_.shown
        hands: dict[int, tuple[str, list[int]]] = {}
        moves = self.changes.added.setdefault("moves", [])
        index = start
        while rows[index][1] == "CardDrawn":
            version, _, schema, at, public, _, _ = rows[index]
            draw = _read_draw(public)
            slot, source = draw.slot, draw.source
            face = faces[slot]
            if (
                draw.round != number
                or schema != SCHEMAS["CardDrawn"]
                or face != _read_face(hidden[version]).card
            ):
                raise ValueError("a draw of another round, or of another card than was sealed")
            if draw.seat not in hands:
                name = hand(draw.seat)
                hands[draw.seat] = name, round_.stacks.setdefault(name, [])
            target, held = hands[draw.seat]
            cards, to_place = round_.stacks[source], len(held)
            place = len(cards) - 1 if cards[-1] == slot else cards.index(slot)
            del cards[place]
            held.append(slot)
            moves.append(
                (
                    stream, version, at, number, "CardDrawn", source, place, target, to_place,
                    slot, face, int(slot in shown),
                )
            )  # fmt: skip
            index += 1
        return index

    def _write_all_stacks(self) -> None:
        round_ = self.round
        for stack, cards in round_.stacks.items():
            self.changes.diff_stack(
                (self.stream.number, round_.number, stack),
                before=[],
                after=cards,
                opened=round_.opened,
                faces=round_.faces,
            )

    def open_earlier(self, slot: int, card: str) -> None:
        """The moves have their faces already."""

    def close(self, reveal: object) -> None:
        """The stacks are written already."""


def _decode(row: ClosedRow, hidden: dict[str, Any]) -> Event:
    return decode(row[1], row[2], _read_object(row[4]), hidden)
