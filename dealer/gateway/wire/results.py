"""Results of methods, and parameters of notifications."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct, field

from dealer.game.events import Origin, Round, ShuffleIndex
from dealer.game.events import Seat as SeatNumber
from dealer.gateway.wire import views
from dealer.gateway.wire.protocol import Error

SignedHead = Annotated[str, "a signed head of the log (C2SP note) over this version"]
IsHost = Annotated[bool, "true if the caller is the host"]
IsReset = Annotated[bool, "true if a snapshot follows instead of events"]
Secret = Annotated[str, "the house's secret of the round, in hex"]
Position = Annotated[str, "how far the feed was read, to go on after it"]


class Result(Struct, omit_defaults=True, kw_only=True):
    """Members that are None are omitted."""


class Changed(Result, kw_only=True):
    """The version after the command."""

    version: views.Version


class Left(Changed, kw_only=True):
    """The version after leaving; a client with the host token stays without a seat."""

    host: Annotated[
        bool | None, "true if this connection has the host token, and stays at the table"
    ] = None


class Opened(Result, kw_only=True):
    """A new table, and the secrets of its host."""

    table: views.Table
    host_token: Annotated[
        str | None,
        "authenticates the host on other connections; secret; absent where `host` was false",
    ] = None
    invite: Annotated[str, "the invitation, which the rules may require to take a seat"]
    version: views.Version
    origin: Origin
    key: views.HouseKey
    ref: views.Ref | None = None


class PastState(Result, kw_only=True):
    """The table at an earlier version, as this viewer could see it then; nothing is signed."""

    table: views.Table
    version: views.Version
    state: Annotated[views.View, "the table as the caller may see it"]


class State(PastState, kw_only=True):
    """The table as the caller may see it, with what is needed to check the log from here on."""

    edge: Annotated[list[str], "roots of the full subtrees of the log, largest first, in hex"]
    checkpoint: SignedHead


class Joined(State, kw_only=True):
    """The table, and the seat that was taken."""

    seat: SeatNumber
    token: Annotated[str, "authenticates the seat on other connections; secret"]


class Ticket(Result, kw_only=True):
    """The ticket, a secret of the user, and when it expires."""

    ticket: Annotated[str, "the ticket: a user's right to one seat, for one use; secret"]
    expires_at: Annotated[int, "when the ticket expires, in epoch milliseconds"]


class BroadcastLink(Result, kw_only=True):
    """The link, for `table.watch`; clients take it as `…/tables/<id>/broadcast#<link>`."""

    link: Annotated[str, "shows the table's broadcast to all who have it; secret"]


class BroadcastRevoked(Result, kw_only=True):
    """Whether the caller had a link, which is not valid any more."""

    revoked: Annotated[bool, "false if there was no link to take back"]


class Resumed(Result, kw_only=True):
    """The table is followed again; with `reset`, a `snapshot` follows instead of events."""

    table: views.Table
    version: views.Version
    checkpoint: SignedHead
    seat: Annotated[int | None, "number of the caller's seat"] = None
    host: IsHost | None = None
    reset: IsReset | None = None


class Following(Result, kw_only=True):
    """Notifications `feed` follow with everything after `position`."""

    position: Position


class Skipped(Struct, rename={"from_": "from"}, kw_only=True):
    """Versions of an archived table, whose events have left the log, or that are damaged there."""

    from_: Annotated[int, "the first of the versions"]
    to: Annotated[int, "the last of the versions"]


class FeedEvent(Result, kw_only=True):
    """An event of a table of the service key, or versions that were archived or are damaged."""

    position: Position
    table: views.Table
    ref: Annotated[str | None, "the service's own id of the table; null without one"]
    version: Annotated[int | None, "version of the event: its place in the table's log, from 1"] = (
        None
    )
    type: Annotated[str | None, "type of the event"] = None
    at: Annotated[int | None, "when the server received the command, in epoch milliseconds"] = None
    event: Annotated[views.AnyEvent | None, "the event as in the log, without its hidden part"] = (
        None
    )
    opened: Annotated[views.Opening | None, "what people wrote, to which the event commits"] = None
    skipped: Annotated[
        Skipped | None, "the versions that were archived or are damaged, instead of an event"
    ] = None
    archived: Annotated[
        bool | None, "true if the events have left the log; the table's bundle has them"
    ] = None
    damaged: Annotated[
        bool | None, "true where the skipped versions are missing or altered in the log"
    ] = None
    subject: Annotated[
        str | None, "of SeatTaken: the service's own id of the user; absent without one"
    ] = None


class Tables(Result, kw_only=True):
    """The tables of the lobby."""

    tables: Annotated[list[views.TableListing], "the tables of the lobby"]


class ServiceTables(Result, kw_only=True):
    """A page of a service's tables."""

    tables: Annotated[list[views.ServiceTableListing], "one entry for each table"]
    next: Annotated[str | None, "with it, another page follows: send it as `after`"] = None


class RoundBegun(Result, kw_only=True):
    """The round, and the house's commitment to its secret."""

    round: Round
    commitment: views.Commitment
    version: views.Version


class RoundEnded(Changed, kw_only=True):
    """The round that was closed, and the house's secret."""

    round: Round
    secret: Secret


class Shuffling(Result, kw_only=True):
    """The shuffle that was started."""

    k: ShuffleIndex
    version: views.Version


class Cosigned(Changed, kw_only=True):
    """The checkpoint that now has the cosignature."""

    size: Annotated[int, "how many events the cosigned checkpoint covers"]


class Dealt(Changed, kw_only=True):
    """How many cards were dealt."""

    dealt: Annotated[int, "how many cards were dealt"]


class Drawn(Result, kw_only=True):
    """The cards that were drawn."""

    cards: Annotated[list[str], "codes of the drawn cards"]
    slots: Annotated[list[int], "slots of the drawn cards, in the same order"]
    version: views.Version


class Bundle(Result, kw_only=True):
    """Where the table's bundle is."""

    url: Annotated[str, "path of the bundle, below the address of this server"]
    version: Annotated[int, "version of the last event in the bundle"]


class Server(Result, kw_only=True):
    """The program and its protocol."""

    name: Annotated[str, "name of the program"]
    version: Annotated[str, "version of the program"]
    protocol: Annotated[str, "name of the protocol, which is the WebSocket subprotocol"]


class TableStatus(Result, kw_only=True):
    """A table of the connection: the caller's role, or why it was not resumed."""

    table: views.Table
    version: views.Version | None = None
    seat: SeatNumber | None = None
    host: IsHost | None = None
    reset: IsReset | None = None
    checkpoint: SignedHead | None = None
    error: Annotated[
        Error | None, "why this table was not resumed, instead of the other members"
    ] = None


class HelloResult(Result, kw_only=True):
    """The server, and the tables that the tokens are for.

    `by_table`: other nodes may serve the same tables, so that a client connects to `/ws/<table>` as
    soon as it knows its table, and a load balancer brings a table's players to one node.
    """

    server: Annotated[Server, "what this server is"]
    tables: Annotated[list[TableStatus], "the tables of `tokens`, in their order"]
    by_table: Annotated[
        bool | None, "true if other nodes may serve the same tables: connect to `/ws/<table>`"
    ] = None
    at: Annotated[int, "the time of the server, in epoch milliseconds"]


class TableStatuses(Result, kw_only=True):
    """The tables of the connection."""

    tables: Annotated[list[TableStatus], "one entry for each table"]


class OpenRpcDocument(Result, kw_only=True):
    """An OpenRPC document: all methods of this server.

    `x-notifications` has the notifications with their parameters, `x-close-codes` the codes with
    which the server closes a connection.
    """

    openrpc: Annotated[str, "version of the OpenRPC specification"]
    info: Annotated[dict[str, Any], "name, version and licence of the server"]
    servers: Annotated[list[dict[str, Any]], "addresses of a server"]
    methods: Annotated[
        list[dict[str, Any]], "every method with its parameters, results, refusals and an example"
    ]
    components: Annotated[dict[str, Any], "schemas and errors that the others refer to"]
    notifications: list[dict[str, Any]] = field(name="x-notifications")
    closes: list[dict[str, Any]] = field(name="x-close-codes")


class Pong(Result, kw_only=True):
    """The time of the server."""

    at: Annotated[int, "the time of the server, in epoch milliseconds"]


class Events(Result, kw_only=True):
    """Several events that were written together."""

    events: Annotated[list[views.AnyEvent], "the events, in order"] = field(name="list")


class Checkpoint(Result, kw_only=True):
    """A signed head of the log: a C2SP note."""

    table: views.Table
    size: Annotated[int, "how many events the checkpoint covers"]
    note: Annotated[str, "the signed head as a C2SP note, with all cosignatures"]


class ResumedNotice(Result, kw_only=True):
    """All missed events were sent; new events follow."""

    table: views.Table
    version: Annotated[int, "version of the newest event that was sent"]


class Snapshot(State, kw_only=True):
    """The table instead of events that cannot be sent; without `proof`, events were lost."""

    reset: Annotated[bool, "always true"]
    proof: Annotated[
        list[str] | None, "consistency proof from the requested version to this one (RFC 6962)"
    ] = None


class Seat(Result, kw_only=True):
    """Whether the seat has a live connection, and since when (epoch ms; null if unknown)."""

    seat: SeatNumber
    here: Annotated[bool, "true if the seat has a live connection"]
    since: Annotated[int | None, "since when that is so, in epoch milliseconds; null if not known"]


class Presence(Result, kw_only=True):
    """The live connections of a table: of each seat, and the number of spectators."""

    table: views.Table
    seats: Annotated[list[Seat], "every taken seat"]
    watching: Annotated[int, "how many spectators are connected"]


class Drain(Result, kw_only=True):
    """The server shuts down: it closes the connection after this delay; then reconnect."""

    reconnect_in_ms: Annotated[int, "milliseconds to wait before reconnecting"]


NOTIFICATIONS: dict[str, type[Struct]] = {
    "events": Events,
    "snapshot": Snapshot,
    "resumed": ResumedNotice,
    "checkpoint": Checkpoint,
    "presence": Presence,
    "feed": FeedEvent,
    "session.drain": Drain,
}
"""The parameters of each notification, by its name; those of `event` are a `views.Event`."""
