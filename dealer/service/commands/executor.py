"""Command executor: turns a command into events and the events into an append for the log.

Decide, encode, evolve; and the same for the end of a shuffle whose entropy is complete. It owns the
tables' clock, the random bytes of rounds, the origins of new tables, and the signers.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from dealer.errors import Refused, VersionConflict
from dealer.eventlog import EventRecord
from dealer.eventlog.keys import NONCE_BYTES, HouseKeys
from dealer.eventlog.rows import EVERYONE
from dealer.game.commands import FinishShuffle, OpenRound, OpenTable
from dealer.game.decide import NoRoundSecrets, decide
from dealer.game.decide.practice import deck_of, lay_out
from dealer.game.events import (
    PROGRAM,
    CardDrawn,
    CardPeeked,
    CardsSwapped,
    EntropyClosed,
    Event,
    NoteAdded,
    RoundClosed,
    RoundOpened,
    ShuffleStarted,
    TableClosed,
)
from dealer.game.state import Round, evolve
from dealer.proof import codec
from dealer.proof.canonical import dump
from dealer.proof.checkpoint import Signer
from dealer.proof.opened import SALT_BYTES, opened_commitment, opening, separate
from dealer.proof.round_keys import secret_length
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.clock import Clock, utc_ms
from dealer.service.commands.maintenance import MaintenanceMode
from dealer.service.tables.cache import TableCache
from dealer.service.tables.execution import COUNT_BYTES, CommandExecution, PendingDraw
from dealer.service.tables.insecure_decks import InsecureDecks
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.round_secret import RoundSecret, private_part

NONCES = 256
"""Random nonces of events that are requested from the system at a time, at least."""


class CommandExecutor:
    """Executes the commands of all tables; `house` is the name in origins.

    `maintenance` refuses what may not begin now, `cache` what may not grow. `insecure_decks` says
    which tables have a test deck. `program`, unless empty, is the text of a note before the first
    round that is opened at a table. `now` is the wall clock: milliseconds since 1970, UTC.
    """

    def __init__(
        self,
        key: HouseKeys,
        *,
        house: str,
        maintenance: MaintenanceMode,
        cache: TableCache,
        insecure_decks: InsecureDecks,
        program: str = "",
        clock: Clock = utc_ms,
    ) -> None:
        self._program = program
        self.now = clock
        self._maintenance = maintenance
        self._cache = cache
        self._insecure_decks = insecure_decks
        self._key = key
        self._house = house
        self._signers: dict[bytes, Signer] = {}
        self._random = b""  # for nonces
        self._random_used = 0

    def origin(self, table: bytes) -> str:
        """The origin of a new table in its checkpoints."""
        return f"{self._house}/t/{table.hex()}"

    def apply(self, live_table: LiveTable, execution: CommandExecution) -> bool:
        """Decide a command, encode its events into `execution`, and evolve the table by them.

        The table in memory is then ahead of the log by these events, and `execution` is the append
        to be submitted. False if the command has no events. Raises Refused, and then nothing has
        changed.
        """
        table, command = live_table.table, execution.command
        if execution.expect is not None and table.version > execution.expect:
            raise VersionConflict("The table has changed; read its state and decide again.")
        if self._maintenance.targets:
            self._maintenance.require(live_table.table_id, command)
        if live_table.weight > self._cache.small:
            self._cache.require_room_to_grow(live_table, command)
        secret = live_table.secret
        source = command.laid_out if isinstance(command, OpenTable) else None
        deck = source.opened if source else None
        if isinstance(command, OpenRound):
            deck = command.deck
        if deck is not None:
            secret = self._draw_secret(live_table, len(deck))
        events = decide(command, table, secret)
        if not events:
            return False
        live_table.secret = secret
        # From here on it is an append that follows what was decided at the table. It may be decided
        # for the second time, after the first append was lost.
        execution.live_table, execution.table = live_table, live_table.id
        execution.chain, execution.expected = live_table.chain, table.version
        execution.rows, execution.checkpoints, execution.events = [], [], []
        execution.waiters, execution.pending_draw = [], None
        if self._program and deck is not None and not live_table.noted_at:
            place = [type(event) for event in events].index(RoundOpened)
            live_table.noted_at = table.version + place + 1
            events.insert(place, NoteAdded(0, PROGRAM, self._program))
        # The time of the command, of which all its events are: pages know by it what was laid out.
        at = table.next_at(self.now())
        self._record(execution, events, at)
        round_ = table.round
        shuffle = None if round_ is None else round_.shuffle
        if shuffle is not None:
            if execution.draw_when_sealed is not None and type(events[0]) is ShuffleStarted:
                answers = [] if execution.on_drawn is None else [execution.on_drawn]
                live_table.pending_draw = PendingDraw(execution.draw_when_sealed, answers)
            if shuffle.ready():
                self._finish(execution, source, at)
        if execution.name is not None:
            # Its id is stored with the first event, see `StoredCommand.read`.
            first, count = execution.rows[0], len(execution.rows)
            first.command = execution.name
            first.digest = execution.digest + count.to_bytes(COUNT_BYTES, "big")
            live_table.stored_commands.pending[execution.name] = execution
        return True

    def _finish(self, execution: CommandExecution, source: Round | None, at: int) -> None:
        """The tape is fixed: shuffle, seal, and execute the draw that waits for the seal.

        The first shuffle of a practice table is followed by the cards as in its `source`.
        """
        live_table: LiveTable = execution.live_table
        deck = deck_of(source) if source else self._insecure_decks.deck_of(live_table.table)
        finish = FinishShuffle(live_table.c1_root, deck)
        self._record(execution, decide(finish, live_table.table, live_table.secret), at)
        round_ = live_table.table.round
        if source and round_ and (placed := lay_out(source, round_, live_table.secret)):
            self._record(execution, placed, at)
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
            self._record(execution, execution.draw_result, at)

    def _record(self, execution: CommandExecution, events: list[Event], at: int) -> None:
        """Encode each event and evolve the table by it; of a shuffle's swaps, all at once."""
        live_table: LiveTable = execution.live_table
        table, secret = live_table.table, live_table.secret
        id, tree, rows = live_table.table_id, live_table.tree, execution.rows
        swaps: list[EventRecord] = []
        if type(events[0]) is CardsSwapped and isinstance(secret, RoundSecret):
            nonces = self._nonces(len(events))
            swaps = encode_swaps(events, id, table.version, at, tree, secret, nonces)
            rows += swaps
        for place, event in enumerate(events):
            if place >= len(swaps):
                version = table.version + 1
                rows.append(encode(event, id, version, at, tree, secret, self._nonces(1)))
                if event.CHECKPOINT:
                    note = self.sign(live_table, version, tree.root())
                    execution.checkpoints.append((version, note))
            evolve(table, event, at)
        execution.events += events
        last = type(event)
        if last is EntropyClosed:
            live_table.c1_root = tree.root()
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


# Records


def encode(
    event: Event,
    table: str,
    version: int,
    at: int,
    tree: Tree,
    secret: RoundSecret | NoRoundSecrets,
    nonce: bytes,
) -> EventRecord:
    """The record of the event at `version` of the table with this id, at millisecond `at`.

    Canonical public part → salted commitment to the hidden or opened part → leaf → tree; then the
    record, with the hidden part encrypted, and the face that it shows to one seat, or the opening.

    `tree` gets the leaf; `nonce` are 12 random bytes.
    """
    kind = type(event).__name__
    v = codec.SCHEMAS[kind]
    commitment: bytes | None = None
    hidden: bytes | None = None
    seat: int | None = None
    private = ""
    if isinstance(event, CardDrawn) and event.card and isinstance(secret, RoundSecret):
        # The same as below in one call: every draw and every card of a deal.
        seat, slot = event.seat, event.slot
        commitment, hidden, private = secret.draw(version, slot, event.card, nonce)
        source = codec.quote(event.source)
        public = f'{{"from":{source},"round":{event.round},"seat":{seat},"slot":{slot}}}'
        leaf = (
            f'{{"at":{at},"commit":"{commitment.hex()}","public":{public},"table":"{table}",'
            f'"type":"{kind}","v":{v},"version":{version}}}'
        )
    else:
        public = in_leaf = codec.encode_public(event)
        if event.OPENED:
            in_leaf, commitment, hidden, private = _opened(event, table, version)
            seat = EVERYONE if private else None
        else:
            if isinstance(secret, RoundSecret):
                commitment, hidden = _hidden(event, version, secret, nonce)
            seat, private = private_part(event, secret)
        commit = None if commitment is None else commitment.hex()
        leaf = codec.leaf(
            at=at, commit=commit, public=in_leaf, table=table, type=kind, v=v, version=version
        )
    tree.add(leaf.encode())
    return EventRecord(
        version, kind, v, at, public, commitment, hidden, None, None, leaf, seat, private, event
    )


def _opened(event: Event, table: str, version: int) -> tuple[str, bytes | None, bytes | None, str]:
    """The public part in the leaf, the commitment to the opened part, its salt and its opening."""
    public, part = separate(type(event).__name__, codec.public(event))
    if not part:
        return dump(public), None, None, ""
    salt = secrets.token_bytes(SALT_BYTES)
    commitment = opened_commitment(
        table=bytes.fromhex(table), version=version, salt=salt, part=part
    )
    return dump(public), commitment, salt, opening(part, salt)


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


def encode_swaps(
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
