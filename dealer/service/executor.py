"""Command executor: turns a command into events and the events into an append for the log.

Decide, finish a shuffle whose entropy is complete, encode, evolve. It owns the tables' clock, the
random bytes of rounds, the origins of new tables, and the signers.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from dealer.errors import DealerError, Refused, VersionConflict
from dealer.eventlog import Result
from dealer.eventlog.encryption import NONCE_BYTES, HouseKeys
from dealer.game.commands import FinishShuffle, OpenRound
from dealer.game.decide import NoRoundSecrets, decide
from dealer.game.events import (
    CardDrawn,
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
from dealer.service.encoding import EncodedAppend, encode, encode_draw
from dealer.service.insecure_decks import InsecureDecks
from dealer.service.live_table import LiveTable
from dealer.service.maintenance import MaintenanceMode
from dealer.service.requests import CommandResult, Outcome, PendingDraw, Request, StoredCommand
from dealer.service.round_secret import RoundSecret
from dealer.service.table_cache import TableCache

NONCES = 256
"""Random nonces of single draws that are requested from the system at a time."""


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class PendingAppend(EncodedAppend):
    """An append in flight: its table, request, events, and the draw that it settles.

    `settled` gets the result from the log's writer.
    """

    live_table: LiveTable
    request: Request
    settled: Settled
    events: list[Event] = field(default_factory=list)
    stored: StoredCommand | None = None
    pending_draw: PendingDraw | None = None
    draw_result: list[Event] | Refused = field(init=False)  # set with `pending_draw`

    def settle(self, result: Result | DealerError) -> None:
        self.settled(self, result)

    def draw_outcome(self) -> Outcome:
        result = self.draw_result
        return result if isinstance(result, Refused) else CommandResult(self.end, result)


Settled = Callable[[PendingAppend, Result | DealerError], None]


class CommandExecutor:
    """Executes the commands of all tables; `house` is the name in origins.

    `maintenance` refuses what may not begin now, `cache` what may not grow. `insecure_decks` says
    which tables have a test deck. `clock` is the wall clock, in milliseconds.
    """

    def __init__(
        self,
        key: HouseKeys,
        *,
        house: str,
        maintenance: MaintenanceMode,
        cache: TableCache,
        insecure_decks: InsecureDecks,
        clock: Clock = utc_ms,
    ) -> None:
        self._clock = clock
        self._maintenance = maintenance
        self._cache = cache
        self._insecure_decks = insecure_decks
        self._key = key
        self._house = house
        self._signers: dict[bytes, Signer] = {}
        self._nonces: list[bytes] = []

    def now(self) -> int:
        """Milliseconds since 1970, UTC."""
        return self._clock()

    def origin(self, table: bytes) -> str:
        """The origin of a new table in its checkpoints."""
        return f"{self._house}/t/{table.hex()}"

    def decide(
        self, live_table: LiveTable, request: Request, settled: Settled
    ) -> PendingAppend | None:
        """The append of the command's events, already evolved; None if there are none.

        `settled` gets its result. Raises Refused, and then nothing has changed.
        """
        table = live_table.table
        if request.expect is not None and table.version > request.expect:
            raise VersionConflict("The table has changed; read its state and decide again.")
        if self._maintenance.targets:
            self._maintenance.require(live_table.table_id, request.command)
        self._cache.require_room_to_grow(live_table, request.command)
        secret = live_table.secret
        if isinstance(request.command, OpenRound):
            secret = self._draw_secret(live_table, len(request.command.deck))
        events = decide(request.command, table, secret)
        if not events:
            return None
        pending = PendingAppend(
            live_table.id,
            table.version,
            chain=live_table.chain,
            live_table=live_table,
            request=request,
            settled=settled,
        )
        if len(events) == 1 and type(events[0]) is CardDrawn and isinstance(secret, RoundSecret):
            self._record_draw(pending, events[0], secret)
            return pending
        live_table.secret = secret
        if request.then is not None and isinstance(events[0], ShuffleStarted):
            answers = [] if request.drawn is None else [request.drawn]
            live_table.pending_draw = PendingDraw(request.then, answers)
        self._record(pending, events)
        round_ = table.round
        if round_ is not None and round_.shuffle is not None and round_.shuffle.ready():
            self._finish(pending, round_)
        self._identify(pending)
        return pending

    def _record_draw(self, pending: PendingAppend, event: CardDrawn, secret: RoundSecret) -> None:
        """`_record` and `_identify` for one drawn card alone, in a straight line.

        Its event needs no checkpoint, finishes no shuffle and leaves the round's secret as it is.
        """
        live_table, request = pending.live_table, pending.request
        table, name = live_table.table, request.name
        expected, at = table.version, table.next_at(self.now())
        stored = None if name is None else StoredCommand(request.digest, expected + 1, 1)
        row, entry = encode_draw(
            event,
            table_id=live_table.table_id,
            version=expected + 1,
            at=at,
            tree=live_table.tree,
            secret=secret,
            nonce=self._nonce(),
            command=name,
            digest=None if stored is None else stored.packed(),
        )
        evolve(table, event, at)
        pending.rows.append(row)
        pending.entries.append(entry)
        pending.events.append(event)
        if name is not None and stored is not None:
            live_table.stored_commands.start(name, stored)
            pending.stored = stored

    def _nonce(self) -> bytes:
        """A random nonce; many are requested at a time, because each request is a system call."""
        if not self._nonces:
            drawn = secrets.token_bytes(NONCE_BYTES * NONCES)
            self._nonces = [
                drawn[at : at + NONCE_BYTES] for at in range(0, len(drawn), NONCE_BYTES)
            ]
        return self._nonces.pop()

    def _finish(self, pending: PendingAppend, round_: Round) -> None:
        """The tape is fixed: shuffle, seal, and execute the draw that waits for the seal."""
        live_table = pending.live_table
        finish = FinishShuffle(live_table.c1_root, self._insecure_decks.deck_of(live_table.table))
        self._record(pending, decide(finish, live_table.table, live_table.secret))
        waiting = live_table.pending_draw
        if waiting is None:
            return
        live_table.pending_draw = None
        pending.pending_draw = waiting
        try:
            pending.draw_result = decide(waiting.draw, live_table.table, live_table.secret)
        except Refused as refusal:
            pending.draw_result = refusal
        else:
            self._record(pending, pending.draw_result)

    def _record(self, pending: PendingAppend, events: Sequence[Event]) -> None:
        live_table = pending.live_table
        table = live_table.table
        at = table.next_at(self.now())
        origin = table.origin or self.origin(live_table.id)
        nonces = secrets.token_bytes(NONCE_BYTES * len(events))
        encode(
            events,
            table=live_table.id,
            version=table.version,
            at=at,
            tree=live_table.tree,
            secret=live_table.secret,
            nonces=nonces,
            sign=partial(self._signer(table.key).sign, origin=origin),
            into=pending,
        )
        for event in events:
            evolve(table, event, at)
        pending.events.extend(events)
        match events[-1]:
            case EntropyClosed():
                live_table.c1_root = live_table.tree.root()
            case RoundClosed() | TableClosed():
                live_table.secret = NoRoundSecrets()

    def _identify(self, pending: PendingAppend) -> None:
        """Store the command's id with its first event, so that it is executed once."""
        live_table, request, rows = pending.live_table, pending.request, pending.rows
        if request.name is not None:
            stored = StoredCommand(request.digest, pending.expected + 1, len(rows))
            rows[0] = rows[0]._replace(command=request.name, digest=stored.packed())
            live_table.stored_commands.start(request.name, stored)
            pending.stored = stored

    def _draw_secret(self, live_table: LiveTable, cards: int) -> RoundSecret:
        secret = secrets.token_bytes(secret_length(cards))
        number = len(live_table.table.round_versions) + 1
        wrapped = self._key.of(live_table.table.key).wrap(
            secret, table=live_table.id, round=number, nonce=secrets.token_bytes(NONCE_BYTES)
        )
        return RoundSecret(table=live_table.id, round=number, secret=secret, wrapped=wrapped)

    def sign(self, live_table: LiveTable, size: int, root: bytes) -> str:
        """The signed note of a checkpoint over `size` leaves with this root."""
        table = live_table.table
        return self._signer(table.key).sign(origin=table.origin, size=size, root=root)

    def _signer(self, key: bytes) -> Signer:
        """The signer of one of the house's keys; raises HouseKeyError."""
        if key not in self._signers:
            under = self._key.of(key)
            key = under.public_key  # of a new table, whose key is the newest at this time
            self._signers.setdefault(key, Signer(under.signing_seed))
        return self._signers[key]
