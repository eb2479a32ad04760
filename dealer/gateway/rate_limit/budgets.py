"""Rate limits of connections, client addresses and players.

    budgets = Budgets(limits)
    client = budgets.client("203.0.113.5", now)   # shared by all connections of the address
    connection = client.begin_connection(now)
    client.admit(1.0, now, connection.commands)   # 0.0, or the seconds to wait
    client.end_connection(connection, now)        # its debt remains

Everything is counted in token buckets: messages, bytes that are written to disk, seconds of the
event loop, tables. Three verbs are used of all of them: *admit* charges what is within the budget,
and says how long anything else has to wait; *charge* takes tokens, into debt if necessary; *refund*
puts them back, for what did not happen. `ClientBudget.admit` is the one function that every message
passes.

A debt belongs to the address and to the player: the next connection of the address inherits the
budget of a closed one that is in debt, and a player who authenticates on another connection
transfers the debt to it. Nothing here waits or reads a clock: callers pass the time, in seconds of
any monotonic clock.
"""

from __future__ import annotations

from asyncio import Semaphore
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from heapq import nsmallest

from dealer.errors import DealerError, RateLimited, Refused, Unavailable
from dealer.gateway.limits import Limits

MAX_ADDRESSES = 4096
"""Budgets of addresses without an open connection that are kept, at most."""

MAX_PLAYERS = 16_384
"""Seats and hosts whose allowances are kept, at most."""

HOUR = 3600.0

_OWED = float("-inf")
"""The least level of a bucket whose debt does not matter."""

LONG_STEP = 0.001
"""Duration in seconds of an event loop step that is charged double if it delayed another client."""

HIGHEST_STEP = 0.5
"""Seconds that the delay of a step is charged at most: a slow machine does not keep a player away
for long."""

HOUSE_BURST = 0.1
"""The share of an hour's tables that all clients together may open at once."""

MAX_CONCURRENT = 2
"""Backlog reads, snapshots and proofs that are made concurrently for one address."""


class Bucket:
    """Refills at `rate` tokens per second up to `burst`; its level can be negative (debt).

    `tokens` is the level at the time `at`.
    """

    __slots__ = ("at", "burst", "rate", "tokens")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self.tokens = burst
        self.at = now

    def level(self, now: float) -> float:
        """The number of tokens at `now`; negative while the bucket is in debt."""
        level = self.tokens + (now - self.at) * self.rate
        self.tokens = level = self.burst if level > self.burst else level
        self.at = now
        return level

    def admit(self, now: float, amount: float = 1.0) -> float:
        """Charge `amount` if there is a token: 0.0, otherwise the seconds until there is one."""
        level = self.level(now)
        if level < 1.0:
            return (1.0 - level) / self.rate
        self.tokens = level - amount
        return 0.0

    def charge(self, amount: float) -> None:
        """Take `amount` tokens, into debt if necessary."""
        self.tokens -= amount

    def refund(self, amount: float) -> None:
        """Put `amount` tokens back, which were charged for what did not happen."""
        self.tokens += amount

    def wait(self, level: float, now: float) -> float:
        """Seconds until there are `level` tokens; 0.0 if there already are."""
        return max(0.0, (level - self.level(now)) / self.rate)

    def debt(self, now: float) -> float:
        """Seconds until the bucket is full."""
        return (self.burst - self.level(now)) / self.rate

    def lower_to(self, other: Bucket, now: float) -> None:
        """Have at most the level of `other`, a bucket of the same rate and burst."""
        self.tokens = min(self.level(now), other.level(now))


class LongSteps:
    """What the newest long steps of the event loop have cost other clients, by the step's client.

    A request that arrives during a step waits for the rest of it, so the delay that a step causes
    grows with the square of its duration: `seconds² / LONG_STEP`. That is charged to its client
    once a message of another one is read that may have waited. If there is none, the step has
    delayed no client, however slow the machine is. The loop may be busy with short work, too,
    before it reads that message.
    """

    __slots__ = ("_busy", "_ended", "delays")

    def __init__(self) -> None:
        self.delays: dict[ClientBudget, float] = {}
        self._busy = 0.0  # processor time of the steps and messages since the first of them
        self._ended = 0.0  # when the last step did

    def add(self, client: ClientBudget, seconds: float, now: float) -> None:
        """Note a step of a client that ended `now`; a short one only among long ones."""
        if not self._may_wait(now - seconds):
            self.delays.clear()
            self._busy = 0.0
        if seconds > LONG_STEP:
            delay = min(seconds * seconds / LONG_STEP, HIGHEST_STEP)
            self.delays[client] = self.delays.get(client, 0.0) + delay
        self._busy += seconds
        self._ended = now

    def settle(self, reader: ClientBudget, now: float, seconds: float) -> None:
        """Charge the steps for which this client's message may have waited.

        It was read `now`, and takes `seconds`.
        """
        if not self._may_wait(now):
            self.delays.clear()
            return
        own = self.delays.pop(reader, 0.0)
        for client, delay in self.delays.items():
            client.cpu.charge(delay)
        self.delays = {reader: own} if own else {}
        self._busy += seconds

    def _may_wait(self, now: float) -> bool:
        """Whether a message that is read `now` may have come while a step of these ran."""
        return now - self._ended <= self._busy


def key_limits(limits: Limits) -> Limits:
    """The limits of a service key: in the place of those of an address, and of a connection."""
    return replace(
        limits,
        rate=limits.key_rate,
        burst=limits.key_burst,
        address_rate=limits.key_rate,
        address_burst=limits.key_burst,
        address_bytes=limits.key_bytes,
        address_bytes_burst=limits.key_bytes_burst,
        address_cpu=limits.key_cpu,
        address_cpu_burst=limits.key_cpu_burst,
        connections_per_address=limits.key_connections,
    )


class ConnectionBudget:
    """Buckets of one connection: `commands`, messages that clients send automatically
    (`automatic`), and rate-limited messages until the connection is closed (`patience`).
    """

    __slots__ = ("automatic", "commands", "patience")

    def __init__(self, limits: Limits, now: float) -> None:
        self.commands = Bucket(rate=limits.rate, burst=limits.burst, now=now)
        self.automatic = Bucket(rate=limits.automatic_rate, burst=limits.automatic_burst, now=now)
        self.patience = Bucket(rate=limits.rate, burst=limits.patience, now=now)

    def debt(self, now: float) -> float:
        """Seconds until every bucket is full."""
        return max(self.commands.debt(now), self.automatic.debt(now), self.patience.debt(now))

    def lower_to(self, other: ConnectionBudget, now: float) -> None:
        """Allow no more than `other` does."""
        self.commands.lower_to(other.commands, now)
        self.automatic.lower_to(other.automatic, now)
        self.patience.lower_to(other.patience, now)


class ClientBudget:
    """Buckets of one client address, or of one service key, shared by its connections.

    `owner` is what messages call it, `long_steps` are those of all clients. `connections` counts
    the open ones. `written` holds bytes that the server may write to disk for it, `cpu` seconds of
    the event loop, `tables` tables that an address may open; `house_tables` are those that all
    addresses may. `long_answers` bounds how many of them are made at once, see `cpu_time.py`.
    """

    __slots__ = (
        "_blocked",
        "_closed",
        "_connects",
        "_limits",
        "_long_steps",
        "_messages",
        "_owner",
        "_patience",
        "connections",
        "cpu",
        "house_tables",
        "long_answers",
        "tables",
        "written",
    )

    def __init__(
        self,
        limits: Limits,
        now: float,
        *,
        owner: str = "Your address",
        house_tables: Bucket | None = None,
        long_steps: LongSteps | None = None,
    ) -> None:
        self._limits = limits
        self._owner = owner
        self._long_steps = long_steps or LongSteps()
        self.connections = 0
        self._connects = Bucket(rate=limits.address_rate, burst=limits.address_burst, now=now)
        self._messages = Bucket(rate=limits.address_rate, burst=limits.address_burst, now=now)
        self._patience = Bucket(rate=limits.address_rate, burst=limits.patience, now=now)
        self.written = Bucket(rate=limits.address_bytes, burst=limits.address_bytes_burst, now=now)
        self.cpu = Bucket(rate=limits.address_cpu, burst=limits.address_cpu_burst, now=now)
        self.long_answers = Semaphore(MAX_CONCURRENT)
        self.tables = Bucket(
            rate=limits.tables_per_hour / HOUR, burst=limits.tables_per_hour, now=now
        )
        self.house_tables = house_tables or house_bucket(limits)
        self._blocked = False
        self._closed: list[ConnectionBudget] = []  # of closed connections that are in debt

    @property
    def cpu_exhausted(self) -> str:
        """Why a request is refused while processor time is owed."""
        return f"{self._owner} has used up its share of the server's processor time"

    # Messages

    def admit(
        self,
        weight: float,
        now: float,
        connection: Bucket | None = None,
        *,
        seconds: float = 0.0,
        writes: bool = False,
        timed: bool = False,
    ) -> float:
        """Charge a message or request: 0.0 if within the budget, otherwise the seconds to wait.

        It counts as `weight` messages of the address and as one in the bucket of its `connection`,
        also if the other refuses it, and costs `seconds` of the event loop: a refusal, too, was
        decoded. With `timed` no processor time may be owed.

        One that `writes` raises RateLimited while earlier writes are owed; its bytes are charged
        when it is carried out.

        A message beyond the budget of the address is charged to its bucket `patience`: once that
        is empty, the address is blocked until it is full again. (If such messages were charged to
        the budget, clients that retry would block each other permanently.)
        """
        messages, cpu = self._messages, self.cpu
        if self._long_steps.delays:
            self._long_steps.settle(self, now, seconds)
        longest = 0.0
        # `Bucket.wait` for all of them without calls: every message passes here.
        for bucket, least in (
            (messages, 1.0), (connection or messages, 1.0), (cpu, 0.0 if timed else _OWED),
        ):  # fmt: skip
            tokens = bucket.tokens + (now - bucket.at) * bucket.rate
            if tokens > bucket.burst:
                tokens = bucket.burst
            bucket.tokens, bucket.at = tokens, now
            if tokens < least:
                longest = max(longest, (least - tokens) / bucket.rate)
        cpu.tokens -= seconds
        if connection is not None and connection.tokens >= 1.0:
            connection.tokens -= 1.0
        if messages.tokens >= 1.0:
            messages.tokens -= weight
        else:
            patience = self._patience
            patience.tokens = max(0.0, patience.level(now) - weight)
            self._blocked = self._blocked or not patience.tokens
        if writes and not longest:
            bucket = self.written
            tokens = bucket.tokens + (now - bucket.at) * bucket.rate
            if tokens < 1.0:
                self.admit_write(0, now)  # which refuses it
            bucket.tokens, bucket.at = min(tokens, bucket.burst), now
        return longest

    def charge(self, weight: float) -> None:
        """Charge the additional cost of an accepted message."""
        self._messages.tokens -= weight

    def step(self, seconds: float, now: float) -> None:
        """Charge an uninterrupted step of the event loop, of so much processor time, that ended."""
        self.cpu.tokens -= seconds
        if seconds > LONG_STEP or self._long_steps.delays:
            self._long_steps.add(self, seconds, now)

    def busy(self, now: float) -> float:
        """Seconds for which processor time is owed; 0.0 if none is."""
        return 0.0 if self.cpu.level(now) >= 0.0 else self.cpu.wait(0.0, now)

    def admit_write(self, written: int, now: float) -> None:
        """Admit bytes that are about to be written to disk for this address.

        Raises RateLimited, with nothing charged, while earlier writes are owed.
        """
        if wait := self.written.admit(now, written):
            reason = f"{self._owner} has used up its share of the server's disk writes"
            raise rate_limited(reason, wait)

    def refund(self, written: int, error: Exception) -> None:
        """Refund what was charged for a request that was refused, and so wrote nothing."""
        if isinstance(error, Refused) and not isinstance(error, Unavailable):
            self.written.refund(written)

    @contextmanager
    def charged(self, written: int, now: float, *, decks: int = 0) -> Iterator[None]:
        """Charge the bytes that the block writes, and a table that it opens with so many `decks`.

        It counts as one for the address, and as so many as it has decks for all clients together.
        Raises RateLimited without running the block if one of them is over its limit; refunds
        what the block refuses.
        """
        self.admit_write(written, now)
        tables = {self.tables: 1, self.house_tables: decks} if decks else {}
        wait = max((bucket.wait(1.0, now) for bucket in tables), default=0.0)
        if wait:
            self.written.refund(written)
            reason = "All clients together have opened the maximum number of tables"
            if self.tables.wait(1.0, now):
                reason = "Your address has opened the maximum number of tables"
            raise rate_limited(reason, wait)
        for bucket, opened in tables.items():
            bucket.charge(opened)
        try:
            yield
        except DealerError as error:
            self.refund(written, error)
            for bucket, opened in tables.items():
                bucket.refund(opened)
            raise

    def blocked(self, now: float) -> float:
        """Seconds until the address may connect again; 0.0 if it is not blocked."""
        if not self._blocked:
            return 0.0
        wait = self._patience.debt(now)
        self._blocked = wait > 0.0
        return wait

    # Connections

    def floods(self, most: int, now: float) -> bool:
        """Whether a new connection is not to be accepted: the address has `most` open ones, or
        opens more per second than it may send messages.
        """
        return self.connections >= most or self._connects.admit(now) > 0.0

    def begin_connection(self, now: float) -> ConnectionBudget:
        """The budget of a new connection: of those of closed connections of this address the one in
        the greatest debt, or a full one.
        """
        self._drop_full(now)
        if not self._closed:
            return ConnectionBudget(self._limits, now)
        inherited = max(self._closed, key=lambda closed: closed.debt(now))
        self._closed.remove(inherited)
        return inherited

    def end_connection(self, connection: ConnectionBudget, now: float) -> None:
        """Keep the budget of a closed connection while it is in debt."""
        self._drop_full(now)
        self._closed.append(connection)
        if len(self._closed) > self._limits.connections_per_address:
            self._closed.remove(min(self._closed, key=lambda closed: closed.debt(now)))

    def debt(self, now: float) -> float:
        """Seconds until every bucket is full."""
        self._drop_full(now)
        buckets = (
            self._connects, self._messages, self._patience, self.written, self.cpu, self.tables,
        )  # fmt: skip
        debts = [bucket.debt(now) for bucket in buckets]
        return max(*debts, *(closed.debt(now) for closed in self._closed))

    def _drop_full(self, now: float) -> None:
        if self._closed:
            self._closed = [closed for closed in self._closed if closed.debt(now) > 0.0]


class Budgets:
    """The budgets of all client addresses and service keys, and what the
    connections of players owe.

    At most about `clients` addresses without a connection and `players` players are kept: beyond
    that the addresses with the least debt and the least recently seen players are dropped.
    """

    def __init__(
        self, limits: Limits, *, clients: int = MAX_ADDRESSES, players: int = MAX_PLAYERS
    ) -> None:
        self._limits = limits
        self._bound = clients
        self._players_bound = players
        self._long_steps = LongSteps()
        self._house_tables = house_bucket(limits)
        self._clients: dict[str, ClientBudget] = {}
        self._key_limits = key_limits(limits)
        self._keys: dict[int, ClientBudget] = {}
        self._players: OrderedDict[Hashable, ConnectionBudget] = OrderedDict()
        self._forget_at = clients

    def __len__(self) -> int:
        return len(self._clients)

    def client(self, address: str, now: float) -> ClientBudget:
        """The budget of an address, in the form of `net.proxies.client_network`."""
        client = self._clients.get(address)
        if client is None:
            if len(self._clients) >= self._forget_at:
                self._drop_least_indebted(now)
            client = ClientBudget(
                self._limits, now, house_tables=self._house_tables, long_steps=self._long_steps
            )
            self._clients[address] = client
        return client

    def key(self, key: int, now: float) -> ClientBudget:
        """The budget of a service key, by its id; kept as long as the process runs."""
        budget = self._keys.get(key)
        if budget is None:
            budget = ClientBudget(
                self._key_limits, now, owner="Your service key", long_steps=self._long_steps
            )
            self._keys[key] = budget
        return budget

    def authenticated(self, player: Hashable, connection: ConnectionBudget, now: float) -> None:
        """Transfer the debt of the previous connection of `player` to `connection`."""
        earlier = self._players.pop(player, None)
        if earlier is not None:
            connection.lower_to(earlier, now)
        self._players[player] = connection
        if len(self._players) > self._players_bound:
            self._players.popitem(last=False)

    def _drop_least_indebted(self, now: float) -> None:
        """Drop a quarter of the bound at once, so that few calls pay for the search.

        Budgets of addresses with open connections are kept: connections have their own limit.
        """
        debts = {
            address: client.debt(now)
            for address, client in self._clients.items()
            if not client.connections
        }
        quarter = max(self._bound // 4, 1)
        surplus = max(len(debts) - self._bound + quarter, 0)
        for address in nsmallest(surplus, debts, key=debts.__getitem__):
            del self._clients[address]
        self._forget_at = max(self._bound, len(self._clients) + quarter)


def house_bucket(limits: Limits) -> Bucket:
    """The tables that all clients without a service key may open, full at the beginning."""
    per_hour = limits.house_tables_per_hour
    return Bucket(rate=per_hour / HOUR, burst=max(HOUSE_BURST * per_hour, 1.0), now=0.0)


def rate_limited(reason: str, wait: float) -> RateLimited:
    """The refusal of a request that may be sent again after `wait` seconds."""
    sentence = f"{reason}: wait a little and send this again."
    return RateLimited(sentence, retry_after_ms=int(wait * 1000) + 1)
