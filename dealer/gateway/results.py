"""What the house answers, and what it tells without being asked."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from dealer.gateway.views import Listing, View, Why


class Result(Struct, omit_defaults=True, kw_only=True):
    """Members that are None are left out."""


class Changed(Result, kw_only=True):
    version: int


class Opened(Result, kw_only=True):
    table: str
    host_token: str
    invite: str
    version: int
    origin: str
    key: str


class State(Result, kw_only=True):
    table: str
    version: int
    state: View
    edge: list[str]
    checkpoint: str


class Joined(State, kw_only=True):
    seat: int
    token: str


class Resumed(Result, kw_only=True):
    """`reset` says that a `snapshot` follows in the place of events."""

    table: str
    version: int
    checkpoint: str
    seat: int | None = None
    host: bool | None = None
    reset: bool | None = None


class Tables(Result, kw_only=True):
    tables: list[Listing]


class RoundBegun(Result, kw_only=True):
    round: int
    commitment: str
    version: int


class RoundEnded(Result, kw_only=True):
    version: int
    round: int
    secret: str


class Shuffling(Result, kw_only=True):
    k: int
    version: int


class Cosigned(Result, kw_only=True):
    version: int
    size: int


class Dealt(Result, kw_only=True):
    version: int
    dealt: int


class Drawn(Result, kw_only=True):
    cards: list[str]
    slots: list[int]
    version: int


class Bundle(Result, kw_only=True):
    url: str
    version: int


class Server(Result, kw_only=True):
    name: str
    version: str
    protocol: str


class Error(Result, kw_only=True):
    code: int
    message: str
    data: Why | None = None


class Standing(Result, kw_only=True):
    table: str
    version: int | None = None
    seat: int | None = None
    host: bool | None = None
    reset: bool | None = None
    checkpoint: str | None = None
    error: Error | None = None


class Greeting(Result, kw_only=True):
    server: Server
    tables: list[Standing]


class Standings(Result, kw_only=True):
    tables: list[Standing]


class Document(Result, kw_only=True):
    """An OpenRPC document: all methods of this house."""

    openrpc: str
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    methods: list[dict[str, Any]]
    components: dict[str, Any]
    notifications: list[dict[str, Any]] = field(name="x-notifications")
    closes: list[dict[str, Any]] = field(name="x-close-codes")


class Pong(Result, kw_only=True):
    at: int


class Checkpoint(Result, kw_only=True):
    table: str
    size: int
    note: str


class CaughtUp(Result, kw_only=True):
    table: str
    version: int


class Reset(State, kw_only=True):
    """In the place of events that cannot be sent; `proof` leads from the version asked for."""

    reset: Literal[True]
    proof: list[str] | None = None


class Seat(Result, kw_only=True):
    """Whether somebody is there, and since when (epoch ms); `since` is null if nobody knows."""

    seat: int
    here: bool
    since: int | None


class Presence(Result, kw_only=True):
    """Who is here: of each seat whether it has a live connection, of onlookers their number."""

    table: str
    seats: list[Seat]
    watching: int


class Drain(Result, kw_only=True):
    reconnect_in_ms: int
