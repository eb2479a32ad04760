"""Rate limiter: token buckets of connections, of client addresses and of players.

    budgets = Budgets(limits)
    client = budgets.client("203.0.113.5", now)   # shared by all connections of the address
    allowance = client.lease(now)                 # of one connection
    client.spend(1.0, now)                        # 0.0, or the seconds to wait
    client.release(allowance, now)                # the connection is closed; its debt stays

A debt belongs to the address and to the player: the next connection of the address inherits the
allowance that a closed one left in debt, and a player who authenticates on another connection
brings the debt along. Nothing here waits or reads a clock: the caller passes the time, in seconds
of any monotonic clock.
"""

from __future__ import annotations

from asyncio import Semaphore
from collections import OrderedDict
from collections.abc import Hashable
from heapq import nsmallest

from dealer.errors import RateLimited
from dealer.gateway.limits import Limits

CLIENTS = 4096
"""Client addresses without a connection whose budgets are remembered, at the most."""

PLAYERS = 16_384
"""Seats, hosts and player keys whose allowances are remembered, at the most."""

HOUR = 3600.0

AT_ONCE = 2
"""Catch-ups, snapshots and proofs of one address that are made at the same time."""

BUSY = "Your address has used as much of the server's time as it may for now"

WRITTEN = "Your address has had as much written to disk as it may for now"


class Bucket:
    """A token bucket that refills at `rate` a second up to `burst`, and can be in debt."""

    __slots__ = ("_at", "_burst", "_level", "_rate")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._level = burst
        self._at = now

    def level(self, now: float) -> float:
        """How many tokens are there; below 0.0 so many are owed."""
        level = self._level + (now - self._at) * self._rate
        self._level = level = self._burst if level > self._burst else level
        self._at = now
        return level

    def take(self, now: float) -> float:
        """0.0 if a token was there and is taken; else the seconds until one will be."""
        level = self.level(now)
        if level >= 1.0:
            self._level = level - 1.0
            return 0.0
        return (1.0 - level) / self._rate

    def charge(self, amount: float) -> None:
        """Take `amount` whether it is there or not; a negative one is a refund."""
        self._level -= amount

    def use_up(self, amount: float) -> bool:
        """Take `amount` as far as it is there; whether nothing is left."""
        self._level = max(0.0, self._level - amount)
        return self._level == 0.0

    def wait(self, level: float, now: float) -> float:
        """Seconds until there are `level` tokens; 0.0 if there are."""
        return max(0.0, (level - self.level(now)) / self._rate)

    def debt(self, now: float) -> float:
        """Seconds until the bucket is full."""
        return (self._burst - self.level(now)) / self._rate

    def lower_to(self, other: Bucket, now: float) -> None:
        """Have no more tokens than a bucket of the same rate and burst has."""
        self._level = min(self.level(now), other.level(now))


class Allowance:
    """What one connection may send: `commands`, messages that clients send on their own
    (`automatic`), and refused messages before the connection is closed (`patience`).
    """

    __slots__ = ("automatic", "commands", "patience")

    def __init__(self, limits: Limits, now: float) -> None:
        self.commands = Bucket(rate=limits.rate, burst=limits.burst, now=now)
        self.automatic = Bucket(rate=limits.automatic_rate, burst=limits.automatic_burst, now=now)
        self.patience = Bucket(rate=limits.rate, burst=limits.patience, now=now)

    def debt(self, now: float) -> float:
        """Seconds until every bucket is full."""
        return max(self.commands.debt(now), self.automatic.debt(now), self.patience.debt(now))

    def lower_to(self, other: Allowance, now: float) -> None:
        """Allow no more than `other` does."""
        self.commands.lower_to(other.commands, now)
        self.automatic.lower_to(other.automatic, now)
        self.patience.lower_to(other.patience, now)


class ClientBudget:
    """What one client address may ask for, over all of its connections.

    `connections` counts those that are open. `written` holds bytes that the server may write to
    disk for this address, `cpu` seconds of the event loop that serving it may take, `tables` the
    tables that it may open. `turns` are those of its long answers, see `turns.py`.
    """

    __slots__ = (
        "_blocked",
        "_limits",
        "_messages",
        "_patience",
        "_released",
        "connections",
        "cpu",
        "tables",
        "turns",
        "written",
    )

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self.connections = 0
        self._messages = Bucket(rate=limits.address_rate, burst=limits.address_burst, now=now)
        self._patience = Bucket(rate=limits.address_rate, burst=limits.patience, now=now)
        self.written = Bucket(rate=limits.address_bytes, burst=limits.address_bytes_burst, now=now)
        self.cpu = Bucket(rate=limits.address_cpu, burst=limits.address_cpu_burst, now=now)
        self.turns = Semaphore(AT_ONCE)
        self.tables = Bucket(
            rate=limits.tables_per_hour / HOUR, burst=limits.tables_per_hour, now=now
        )
        self._blocked = False
        self._released: list[Allowance] = []  # of closed connections, still in debt

    # Messages

    def spend(self, weight: float, now: float) -> float:
        """Charge a message or request; 0.0 if it is within the budget, else the seconds to wait.

        A refused one is charged to the patience with this address: once that is used up, the
        address is blocked until it has come back. (Were it charged to the budget, clients that
        try again would keep each other out for good.)
        """
        if self._messages.level(now) >= 1.0:
            self._messages.charge(weight)
            return 0.0
        self._patience.level(now)
        if self._patience.use_up(weight):
            self._blocked = True
        return self._messages.wait(1.0, now)

    def charge(self, weight: float) -> None:
        """Charge what a message that was let through costs beside itself."""
        self._messages.charge(weight)

    def busy(self, now: float) -> float:
        """Seconds until the time that serving this address took is paid for; 0.0 if it is."""
        return 0.0 if self.cpu.level(now) >= 0.0 else self.cpu.wait(0.0, now)

    def pay(self, written: int, now: float) -> float:
        """Charge bytes that are about to be written to disk for this address.

        0.0; or the seconds until earlier ones are paid for, and nothing is charged.
        """
        if self.written.level(now) < 1.0:
            return self.written.wait(1.0, now)
        self.written.charge(written)
        return 0.0

    def blocked(self, now: float) -> float:
        """Seconds until the address may connect again; 0.0 if it may."""
        if not self._blocked:
            return 0.0
        wait = self._patience.debt(now)
        self._blocked = wait > 0.0
        return wait

    # Connections

    def lease(self, now: float) -> Allowance:
        """The allowance for a new connection: the one in the greatest debt that a closed
        connection of this address left behind, or a full one.
        """
        self._forget_paid(now)
        if not self._released:
            return Allowance(self._limits, now)
        inherited = max(self._released, key=lambda one: one.debt(now))
        self._released.remove(inherited)
        return inherited

    def release(self, allowance: Allowance, now: float) -> None:
        """A connection is closed."""
        self._forget_paid(now)
        self._released.append(allowance)
        if len(self._released) > self._limits.connections_per_address:
            self._released.remove(min(self._released, key=lambda one: one.debt(now)))

    def debt(self, now: float) -> float:
        """Seconds until nothing is owed or used up."""
        self._forget_paid(now)
        buckets = (self._messages, self._patience, self.written, self.cpu, self.tables)
        debts = [bucket.debt(now) for bucket in buckets]
        return max(*debts, *(one.debt(now) for one in self._released))

    def _forget_paid(self, now: float) -> None:
        if self._released:
            self._released = [one for one in self._released if one.debt(now) > 0.0]


class Budgets:
    """The budgets of all client addresses, and the allowances that players use.

    At most about `clients` addresses without a connection and `players` players are remembered:
    beyond that the least indebted addresses, and the players seen longest ago, are forgotten.
    """

    def __init__(self, limits: Limits, *, clients: int = CLIENTS, players: int = PLAYERS) -> None:
        self._limits = limits
        self._bound = clients
        self._players_bound = players
        self._clients: dict[str, ClientBudget] = {}
        self._players: OrderedDict[Hashable, Allowance] = OrderedDict()
        self._forget_at = clients

    def __len__(self) -> int:
        return len(self._clients)

    def client(self, address: str, now: float) -> ClientBudget:
        """The budget of an address, as `hops.client_network` names it."""
        client = self._clients.get(address)
        if client is None:
            if len(self._clients) >= self._forget_at:
                self._forget(now)
            client = self._clients[address] = ClientBudget(self._limits, now)
        return client

    def authenticated(self, player: Hashable, allowance: Allowance, now: float) -> None:
        """`player` uses the connection of `allowance`, which takes over the debt of the last."""
        earlier = self._players.pop(player, None)
        if earlier is not None:
            allowance.lower_to(earlier, now)
        self._players[player] = allowance
        if len(self._players) > self._players_bound:
            self._players.popitem(last=False)

    def _forget(self, now: float) -> None:
        """Make room for a quarter of the bound, so that few calls pay for the search.

        The budgets of addresses with open connections stay: these have a limit of their own.
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


def rate_limited(what: str, wait: float) -> RateLimited:
    """The refusal of what may be sent again after `wait` seconds."""
    sentence = f"{what}: wait a little and send this again."
    return RateLimited(sentence, retry_after_ms=int(wait * 1000) + 1)
