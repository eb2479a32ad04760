"""A command becomes events, and events become what the log keeps and the table is told.

Everything between a wish and the writer's desk: decide, carry out a shuffle whose entropy is
there, write down, evolve. Here are the tables' clock, the random bytes of their rounds, the name
that a new table has in its checkpoints, and the signers.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial

from dealer.errors import Conflicted, Refused
from dealer.eventlog import Append
from dealer.eventlog.sealing import NONCE_BYTES, HouseKeys
from dealer.game.commands import FinishShuffle, OpenRound
from dealer.game.decide import NoSecret, decide
from dealer.game.events import (
    EntropyClosed,
    Event,
    RoundClosed,
    ShuffleStarted,
    TableClosed,
)
from dealer.game.state import Round, evolve
from dealer.proof.checkpoint import Signer
from dealer.proof.keys import secret_length
from dealer.service.clock import Clock, utc_ms
from dealer.service.closures import Closures
from dealer.service.memory import Memory
from dealer.service.record import Recorded, write
from dealer.service.requests import Done, Outcome, PendingDraw, Remembered, Request
from dealer.service.resident import Resident
from dealer.service.round_secret import RoundSecret


class Flight:
    """An append on its way to the disk: whose it is, what is in it, who will be told."""

    __slots__ = (
        "drawn",
        "drawn_result",
        "events",
        "last",
        "recorded",
        "remembered",
        "request",
        "resident",
    )

    def __init__(self, resident: Resident, request: Request) -> None:
        self.resident = resident
        self.request = request
        self.events: list[Event] = []
        self.recorded = Recorded([], [], [])
        self.remembered: Remembered | None = None
        self.drawn: PendingDraw | None = None
        self.drawn_result: list[Event] | Refused = []
        self.last = 0

    def drawn_outcome(self) -> Outcome:
        result = self.drawn_result
        return result if isinstance(result, Refused) else Done(self.last, result)


class Judge:
    """Decides for every table of one house; `house` is its name in origins.

    What may not begin now is refused by `closures`, what may not grow by `memory`. `clock` is the
    wall clock.
    """

    def __init__(
        self,
        key: HouseKeys,
        *,
        house: str,
        closures: Closures,
        memory: Memory,
        clock: Clock = utc_ms,
    ) -> None:
        self._clock = clock
        self._closures = closures
        self._memory = memory
        self._key = key
        self._house = house
        self._signers: dict[bytes, Signer] = {}
        self.public_key = key.public_key

    def now(self) -> int:
        """Milliseconds since 1970, UTC."""
        return self._clock()

    def origin(self, table: bytes) -> str:
        """What a table that begins now is called in its checkpoints."""
        return f"{self._house}/t/{table.hex()}"

    def decide(self, resident: Resident, request: Request) -> Append | None:
        """The append that carries a command out; None where nothing needs to happen.

        Raises a Refused, and then nothing has changed.
        """
        table = resident.table
        if request.expect is not None and table.version > request.expect:
            raise Conflicted("The table has moved on; look at it and decide again.")
        if self._closures.targets:
            self._closures.require(resident.table_id, request.command)
        self._memory.require_room_to_grow(resident, request.command)
        secret = resident.secret
        if isinstance(request.command, OpenRound):
            secret = self._draw_secret(resident, len(request.command.deck))
        events = decide(request.command, table, secret)
        if not events:
            return None
        expected = table.version
        flight = Flight(resident, request)
        resident.secret = secret
        if request.then is not None and isinstance(events[0], ShuffleStarted):
            answers = [] if request.drawn is None else [request.drawn]
            resident.pending_draw = PendingDraw(request.then, answers)
        self._happen(flight, events)
        round_ = table.round
        if round_ is not None and round_.shuffle is not None and round_.shuffle.ready():
            self._finish(flight, round_)
        return self._append(flight, expected)

    def _finish(self, flight: Flight, round_: Round) -> None:
        """The tape is fixed: shuffle, seal, and draw for whom the shuffle was made."""
        resident = flight.resident
        finish = FinishShuffle(resident.c1_root)
        self._happen(flight, decide(finish, resident.table, resident.secret))
        pending = resident.pending_draw
        if pending is None:
            return
        resident.pending_draw = None
        flight.drawn = pending
        try:
            flight.drawn_result = decide(pending.draw, resident.table, resident.secret)
        except Refused as refusal:
            flight.drawn_result = refusal
        else:
            self._happen(flight, flight.drawn_result)

    def _happen(self, flight: Flight, events: Sequence[Event]) -> None:
        resident = flight.resident
        table = resident.table
        at = max(self.now(), table.at)
        origin = table.origin or self.origin(resident.id)
        nonces = secrets.token_bytes(NONCE_BYTES * len(events))
        write(
            events,
            table=resident.id,
            version=table.version,
            at=at,
            tree=resident.tree,
            secret=resident.secret,
            nonces=nonces,
            sign=partial(self._signer(table.key).sign, origin=origin),
            into=flight.recorded,
        )
        for event in events:
            evolve(table, event, at)
        flight.events.extend(events)
        match events[-1]:
            case EntropyClosed():
                resident.c1_root = resident.tree.root()
            case RoundClosed() | TableClosed():
                resident.secret = NoSecret()

    def _append(self, flight: Flight, expected: int) -> Append:
        resident, request = flight.resident, flight.request
        rows, _, notes = flight.recorded
        flight.last = expected + len(rows)
        if request.name is not None:
            remembered = Remembered(request.digest, expected + 1, len(rows))
            rows[0] = rows[0]._replace(command=request.name, digest=remembered.stored())
            resident.recent.start(request.name, remembered)
            flight.remembered = remembered
        return Append(resident.id, expected, rows, notes, tag=flight, chain=resident.chain)

    def _draw_secret(self, resident: Resident, cards: int) -> RoundSecret:
        secret = secrets.token_bytes(secret_length(cards))
        number = len(resident.table.openings) + 1
        wrapped = self._key.of(resident.table.key).wrap(
            secret, table=resident.id, round=number, nonce=secrets.token_bytes(NONCE_BYTES)
        )
        return RoundSecret(table=resident.id, round=number, secret=secret, wrapped=wrapped)

    def sign(self, resident: Resident, size: int, root: bytes) -> str:
        """The note of a checkpoint: this table has `size` leaves under this root."""
        table = resident.table
        return self._signer(table.key).sign(origin=table.origin, size=size, root=root)

    def _signer(self, key: bytes) -> Signer:
        """Signs for the tables under one of the house's keys; raises HouseKeyError."""
        if key not in self._signers:
            self._signers[key] = Signer(self._key.of(key).signing_seed)
        return self._signers[key]
