"""A simple second implementation of the read models, computed with all faces known.

It shares only the game's `evolve` with the projector. Here a card is hidden because a rule says so;
in the projector because the state never had its face.
"""

from __future__ import annotations

import json
from typing import Any

from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardShown,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    Event,
    RoundClosed,
    RoundOpened,
    SeatLeft,
    SeatTaken,
    ShuffleStarted,
    ShuffleVoided,
    StackCut,
    TableClosed,
    TableOpened,
)
from dealer.game.state import Round, Shuffle, Table, evolve
from tests.projector.random_games import Game

Row = tuple[Any, ...]


def expected(*games: Game, upto: int | None = None) -> dict[str, set[Row]]:
    """The rows of games, after the events in the log, in the order in which they were added."""
    rows: dict[str, set[Row]] = {}
    for number, game in enumerate(games, 1):
        reference = Expected(number, game.id)
        for event, at in game.events[: game.logged if upto is None else upto]:
            reference.take(event, at)
        for model, found in reference.rows().items():
            rows[model] = rows.get(model, set()) | found
    return rows


class Expected:
    """Applies events one by one; `rows` returns the rows of stream `number` by read model."""

    def __init__(self, number: int, table_id: bytes) -> None:
        self.number = number
        self.id = table_id.hex()
        self.table = Table()
        self.top: dict[str, Any] = {}
        self.seats: list[list[Any]] = []
        self.rounds: dict[int, list[Any]] = {}
        self.shuffles: dict[tuple[int, int], list[Any]] = {}
        self.swaps: list[Row] = []
        self.moves: list[list[Any]] = []
        self.known: set[tuple[int, int]] = set()  # (round, card as the state has it)
        self.swapped = 0
        self.stacks: dict[tuple[int, str], list[Row]] = {}

    def take(self, event: Event, at: int) -> None:
        version, round_ = self.table.version + 1, self.table.round
        if isinstance(event, RoundClosed):
            assert round_ is not None
            faces = range(-len(round_.opened), len(round_.faces))
            self.known |= {(event.round, card) for card in faces}
            self._read_stacks()
            self.rounds[event.round][-3:] = [version, at, event.secret.hex()]
        self._note(event, version, at)
        evolve(self.table, event, at)
        self._read_stacks()

    @property
    def _round(self) -> Round:
        assert self.table.round is not None
        return self.table.round

    @property
    def _running(self) -> Shuffle:
        assert self._round.shuffle is not None
        return self._round.shuffle

    def _note(self, event: Event, version: int, at: int) -> None:
        match event:
            case TableOpened(origin, key, rules, name):
                self.top = {
                    "name": name, "origin": origin, "key": key.hex(),
                    "rules": json.dumps(dict(rules), sort_keys=True, separators=(",", ":")),
                    "opened_at": at, "closed_at": None,
                }  # fmt: skip
            case TableClosed():
                self.top["closed_at"] = at
            case SeatTaken(seat, name, key):
                self.seats.append([seat, version, at, name, key and key.hex(), None, None])
            case SeatLeft(seat):
                (row,) = (row for row in self.seats if row[0] == seat and row[-1] is None)
                row[-2:] = [version, at]
            case RoundOpened(number, deck, entropy, _, _, commitment):
                self.rounds[number] = [
                    version, at, len(deck), entropy, commitment.hex(), None, None, None,
                ]  # fmt: skip
                self.known |= {(number, ~place) for place in range(len(deck))}
            case ShuffleStarted(number, k, stack, n, algorithm, steps):
                self.swapped = 0
                self.shuffles[number, k] = [
                    stack, n, algorithm, steps, version, at, None, None, None, "running",
                    None, None, None,
                ]  # fmt: skip
            case EntropyClosed(number, k):
                digests = self._running.digests
                self.shuffles[number, k][6:8] = [version, len(digests)]
            case ShuffleVoided(number, k):
                self._end(number, k, ["voided", version, at, None])
            case CardsSwapped(number, k, step, i, j):
                assert j is not None
                cards = self._round.cards(self._running.stack)
                two = self._round.face(cards[i]), self._round.face(cards[j])
                self.swaps.append((number, k, step, version, i, j, *two))
                self.swapped += 1
            case DeckSealed(number, k, first, _):
                self._end(number, k, ["sealed", version, at, first])
                if not self.swapped:
                    # No cards were exchanged, so the known faces stay known.
                    before = list(enumerate(self._round.cards(self._running.stack), first))
                    known = [
                        (number, slot) for slot, card in before if (number, card) in self.known
                    ]
                    self.known.update(known)
            case CardDrawn(number, seat, source, slot, _):
                target = f"hand:{seat}"
                places = self._at(source, slot), len(self._round.cards(target))
                self._moved(version, at, event, source, target, places, slot)
            case CardMoved(number, slot, source, to, place, _):
                self._moved(version, at, event, source, to, (self._at(source, slot), place), slot)
            case CardShown(number, slot, _, _):
                self.known.add((number, slot))
                holder = self._round.stack_of(slot)
                assert holder is not None
                here = self._at(holder, slot)
                self._moved(version, at, event, holder, holder, (here, here), slot, shown=1)
            case StackCut(_, stack, place):
                self._moved(version, at, event, stack, stack, (place, 0), None)

    def _end(self, number: int, k: int, ended: list[Any]) -> None:
        self.shuffles[number, k][8:] = [len(self._running.nonces), *ended]

    def _at(self, stack: str, slot: int) -> int:
        return self._round.cards(stack).index(slot)

    def _moved(
        self, version: int, at: int, event: Event, source: str, target: str,
        places: tuple[int, int], slot: int | None, shown: int | None = None,
    ) -> None:  # fmt: skip
        round_ = self._round
        shown = int(slot in round_.shown) if shown is None else shown
        face = None if slot is None else round_.face(slot)
        self.moves.append(
            [version, at, round_.number, type(event).__name__, source, places[0], target,
             places[1], slot, face, shown]
        )  # fmt: skip

    def _read_stacks(self) -> None:
        """The cards of each stack after the event; those of a closed round stay as they were."""
        round_ = self.table.round
        if round_ is None:
            return
        shuffle = round_.shuffle
        for stack, cards in round_.stacks.items():
            rows: list[Row] = []
            for place, card in enumerate(cards):
                face = round_.face(card) if (round_.number, card) in self.known else None
                if shuffle is not None and shuffle.stack == stack and self.swapped:
                    rows.append((place, None, None))
                else:
                    rows.append((place, card if card >= 0 else None, face))
            self.stacks[round_.number, stack] = rows

    def rows(self) -> dict[str, set[Row]]:
        closed = {number for number, row in self.rounds.items() if row[-1] is not None}
        n = (self.number,)
        models: dict[str, set[Row]] = {
            "tables": {(
                *n, self.id, *self.top.values(), len(self.rounds), self.table.version,
            )},
            "seats": {(*n, *row) for row in self.seats},
            "rounds": {(*n, number, *row) for number, row in self.rounds.items()},
            "shuffles": {(*n, *key, *row) for key, row in self.shuffles.items()},
            "swaps": {(*n, *row) for row in self.swaps if row[0] in closed},
            "moves": {
                (*n, *row[:9], row[9] if (row[2], row[8]) in self.known else None, row[10])
                for row in self.moves
            },
            "deck": set(), "hands": set(), "piles": set(),
        }  # fmt: skip
        for (number, stack), rows in self.stacks.items():
            kind, _, name = stack.partition(":")
            model = {"deck": "deck", "hand": "hands", "pile": "piles"}[kind]
            where = () if kind == "deck" else (int(name) if kind == "hand" else name,)
            models[model] |= {(*n, number, *where, *row) for row in rows}
        return models
