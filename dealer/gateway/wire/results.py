"""Results of methods, and parameters of notifications."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from dealer.gateway.wire.views import ErrorData, ServiceTableListing, TableListing, View


class Result(Struct, omit_defaults=True, kw_only=True):
    """Members that are None are omitted."""


class Changed(Result, kw_only=True):
    """The version after the command."""

    version: int


class Left(Changed, kw_only=True):
    """The version after leaving; a client with the host token stays without a seat."""

    host: bool | None = None


class Opened(Result, kw_only=True):
    """A new table, and the secrets of its host."""

    table: str
    host_token: str | None = None
    invite: str
    version: int
    origin: str
    key: str
    ref: str | None = None


class State(Result, kw_only=True):
    """The table as the caller may see it, with what is needed to check the log from here on."""

    table: str
    version: int
    state: View
    edge: list[str]
    checkpoint: str


class PastState(Result, kw_only=True):
    """The table at an earlier version, as this viewer could see it then; nothing is signed."""

    table: str
    version: int
    state: View


class Joined(State, kw_only=True):
    """The table, and the seat that was taken."""

    seat: int
    token: str


class Ticket(Result, kw_only=True):
    """The ticket, a secret of the user, and when it expires."""

    ticket: str
    expires_at: int


class Resumed(Result, kw_only=True):
    """The table is followed again; with `reset`, a `snapshot` follows instead of events."""

    table: str
    version: int
    checkpoint: str
    seat: int | None = None
    host: bool | None = None
    reset: bool | None = None


class Following(Result, kw_only=True):
    """Notifications `feed` follow with everything after `position`."""

    position: str


class Skipped(Struct, rename={"from_": "from"}, kw_only=True):
    """Versions of an archived table, whose events have left the log, or that are damaged there."""

    from_: int
    to: int


class FeedEvent(Result, kw_only=True):
    """One event of a table of the service key, or versions of it that were archived or are damaged.

    `event` is the event as in the log, without its hidden part.
    """

    position: str
    table: str
    ref: str | None
    version: int | None = None
    type: str | None = None
    at: int | None = None
    event: dict[str, Any] | None = None
    skipped: Skipped | None = None
    archived: bool | None = None
    damaged: bool | None = None
    subject: str | None = None


class Tables(Result, kw_only=True):
    """The tables of the lobby."""

    tables: list[TableListing]


class ServiceTables(Result, kw_only=True):
    """A page of a service's tables; with `next`, another page follows after that id."""

    tables: list[ServiceTableListing]
    next: str | None = None


class RoundBegun(Result, kw_only=True):
    """The round, and the house's commitment to its secret."""

    round: int
    commitment: str
    version: int


class RoundEnded(Changed, kw_only=True):
    """The round that was closed, and the house's secret."""

    round: int
    secret: str


class Shuffling(Result, kw_only=True):
    """The shuffle that was started."""

    k: int
    version: int


class Cosigned(Changed, kw_only=True):
    """The checkpoint that now has the cosignature."""

    size: int


class Dealt(Changed, kw_only=True):
    """How many cards were dealt."""

    dealt: int


class Drawn(Result, kw_only=True):
    """The cards that were drawn."""

    cards: list[str]
    slots: list[int]
    version: int


class Bundle(Result, kw_only=True):
    """Where the table's bundle is."""

    url: str
    version: int


class Server(Result, kw_only=True):
    """The program and its protocol."""

    name: str
    version: str
    protocol: str


class Error(Result, kw_only=True):
    """Why a request was not executed."""

    code: int
    message: str
    data: ErrorData | None = None


class TableStatus(Result, kw_only=True):
    """A table of the connection: the caller's role, or why it was not resumed."""

    table: str
    version: int | None = None
    seat: int | None = None
    host: bool | None = None
    reset: bool | None = None
    checkpoint: str | None = None
    error: Error | None = None


class HelloResult(Result, kw_only=True):
    """The server, and the tables that the tokens are for.

    `by_table`: other nodes may serve the same tables, so that a client connects to `/ws/<table>` as
    soon as it knows its table, and a load balancer brings a table's players to one node.
    """

    server: Server
    tables: list[TableStatus]
    by_table: bool | None = None


class TableStatuses(Result, kw_only=True):
    """The tables of the connection."""

    tables: list[TableStatus]


class OpenRpcDocument(Result, kw_only=True):
    """An OpenRPC document: all methods of this server.

    `x-notifications` has the notifications with their parameters, `x-close-codes` the codes with
    which the server closes a connection.
    """

    openrpc: str
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    methods: list[dict[str, Any]]
    components: dict[str, Any]
    notifications: list[dict[str, Any]] = field(name="x-notifications")
    closes: list[dict[str, Any]] = field(name="x-close-codes")


class Pong(Result, kw_only=True):
    """The time of the server."""

    at: int


class Checkpoint(Result, kw_only=True):
    """A signed head of the log: a C2SP note."""

    table: str
    size: int
    note: str


class ResumedNotice(Result, kw_only=True):
    """All missed events were sent; new events follow."""

    table: str
    version: int


class Snapshot(State, kw_only=True):
    """The table instead of events that cannot be sent; without `proof`, events were lost."""

    reset: Literal[True]
    proof: list[str] | None = None


class Seat(Result, kw_only=True):
    """Whether the seat has a live connection, and since when (epoch ms; null if unknown)."""

    seat: int
    here: bool
    since: int | None


class Presence(Result, kw_only=True):
    """The live connections of a table: of each seat, and the number of spectators."""

    table: str
    seats: list[Seat]
    watching: int


class Drain(Result, kw_only=True):
    """The server shuts down: it closes the connection after this delay; then reconnect."""

    reconnect_in_ms: int
