"""Command executor: turns a command into events and the events into an append for the log.

Decide, encode, evolve; and the same for the end of a shuffle whose entropy is complete. It owns the
tables' clock, the random bytes of rounds, the origins of new tables, and the signers.
"""

from __future__ import annotations

import secrets
from functools import partial

from dealer.errors import Refused, VersionConflict
from dealer.eventlog.encryption import NONCE_BYTES, HouseKeys
from dealer.game.commands import FinishShuffle, OpenRound
from dealer.game.decide import NoRoundSecrets, decide
from dealer.game.events import EntropyClosed, Event, RoundClosed, ShuffleStarted, TableClosed
from dealer.game.state import evolve
from dealer.proof.checkpoint import Signer
from dealer.proof.keys import secret_length
from dealer.service.clock import Clock, utc_ms
from dealer.service.encoding import encode
from dealer.service.execution import CommandExecution, PendingDraw, Settler
from dealer.service.insecure_decks import InsecureDecks
from dealer.service.live_table import LiveTable
from dealer.service.maintenance import MaintenanceMode
from dealer.service.round_secret import RoundSecret
from dealer.service.table_cache import TableCache

NONCES = 256
"""Random nonces of events that are requested from the system at a time, at least."""


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
        self._random = b""  # for nonces
        self._random_used = 0

    def now(self) -> int:
        """Milliseconds since 1970, UTC."""
        return self._clock()

    def origin(self, table: bytes) -> str:
        """The origin of a new table in its checkpoints."""
        return f"{self._house}/t/{table.hex()}"

    def apply(self, live_table: LiveTable, execution: CommandExecution, settler: Settler) -> bool:
        """Decide a command, encode its events into `execution`, and evolve the table by them.

        The table in memory is then ahead of the log by these events, and `execution` is the append
        to be submitted; `settler` continues it when it is written or lost. False if the command has
        no events. Raises Refused, and then nothing has changed.
        """
        table, command = live_table.table, execution.command
        if execution.expect is not None and table.version > execution.expect:
            raise VersionConflict("The table has changed; read its state and decide again.")
        if self._maintenance.targets:
            self._maintenance.require(live_table.table_id, command)
        if live_table.weight > self._cache.small:
            self._cache.require_room_to_grow(live_table, command)
        secret = live_table.secret
        if isinstance(command, OpenRound):
            secret = self._draw_secret(live_table, len(command.deck))
        events = decide(command, table, secret)
        if not events:
            return False
        live_table.secret = secret
        execution.begin(live_table, settler)
        self._record(execution, events)
        round_ = table.round
        shuffle = None if round_ is None else round_.shuffle
        if shuffle is not None:
            if execution.then is not None and type(events[0]) is ShuffleStarted:
                drawn = execution.drawn
                answers = [] if drawn is None else [drawn]
                live_table.pending_draw = PendingDraw(execution.then, answers)
            if shuffle.ready():
                self._finish(execution)
        if execution.name is not None:
            execution.stamp()
            live_table.stored_commands.pending[execution.name] = execution
        return True

    def _finish(self, execution: CommandExecution) -> None:
        """The tape is fixed: shuffle, seal, and execute the draw that waits for the seal."""
        live_table: LiveTable = execution.live_table
        finish = FinishShuffle(live_table.c1_root, self._insecure_decks.deck_of(live_table.table))
        self._record(execution, decide(finish, live_table.table, live_table.secret))
        waiting = live_table.pending_draw
        if waiting is None:
            return
        live_table.pending_draw = None
        execution.pending_draw = waiting
        try:
            execution.draw_result = decide(waiting.draw, live_table.table, live_table.secret)
        except Refused as refusal:
            execution.draw_result = refusal
        else:
            self._record(execution, execution.draw_result)

    def _record(self, execution: CommandExecution, events: list[Event]) -> None:
        live_table: LiveTable = execution.live_table
        table = live_table.table
        at = table.next_at(self.now())
        execution.rows += encode(
            events,
            table=live_table.table_id,
            version=table.version,
            at=at,
            tree=live_table.tree,
            secret=live_table.secret,
            nonces=self._nonces(len(events)),
            sign=partial(self.sign, live_table),
            checkpoints=execution.checkpoints,
        )
        execution.events += events
        for event in events:
            evolve(table, event, at)
        last = type(events[-1])
        if last is EntropyClosed:
            live_table.c1_root = live_table.tree.root()
        elif last is RoundClosed or last is TableClosed:
            live_table.secret = NoRoundSecrets()

    def _nonces(self, count: int) -> bytes:
        """Random nonces of events; many are requested at a time, each request is a system call."""
        begin = self._random_used
        end = begin + NONCE_BYTES * count
        if end > len(self._random):
            begin, end = 0, NONCE_BYTES * count
            self._random = secrets.token_bytes(max(end, NONCE_BYTES * NONCES))
        self._random_used = end
        return self._random[begin:end]

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
        origin = table.origin or self.origin(live_table.id)
        return self._signer(table.key).sign(origin=origin, size=size, root=root)

    def _signer(self, key: bytes) -> Signer:
        """The signer of one of the house's keys; raises HouseKeyError."""
        if key not in self._signers:
            under = self._key.of(key)
            key = under.public_key  # of a new table, whose key is the newest at this time
            self._signers.setdefault(key, Signer(under.signing_seed))
        return self._signers[key]
