"""Limits of the server as settings: `--limit rate=20` or `DEALER_LIMIT_RATE=20`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from dealer.errors import ConfigurationError

if TYPE_CHECKING:
    from dealer.gateway.limits import Limits

LIMIT_VARIABLE = "DEALER_LIMIT_"

LIMITS: Mapping[str, str] = {
    "message": "bytes of one message from a client",
    "rate": "commands per second of one connection; 52 cards to shuffle count as one more",
    "burst": "commands of one connection in a burst",
    "automatic_rate": "messages per second that clients send automatically for a shuffle",
    "automatic_burst": "such messages in a burst",
    "patience": "rate-limited messages in a burst, of a connection or address, until it is cut off",
    "address_rate": "messages and requests per second of one client address, all connections",
    "address_burst": "such messages and requests in a burst",
    "address_bytes": "bytes per second that are written to disk for one client address",
    "address_bytes_burst": "such bytes in a burst",
    "address_cpu": "seconds of server time, per second, that one client address may use",
    "address_cpu_burst": "such seconds in a burst",
    "tables_per_hour": "tables that one client address may open per hour, or in a burst",
    "house_tables_per_hour": "tables that all clients without a service key may open per hour, "
    "or a tenth of them in a burst",
    "key_rate": "messages and requests per second of one service key, all connections",
    "key_burst": "such messages and requests in a burst",
    "key_bytes": "bytes per second that are written to disk for one service key",
    "key_bytes_burst": "such bytes in a burst",
    "key_cpu": "seconds of server time, per second, that one service key may use",
    "key_cpu_burst": "such seconds in a burst",
    "key_connections": "connections of one service key",
    "tables": "tables of one connection; a service has no such limit",
    "connections": "connections in total",
    "connections_per_address": "connections from one address",
    "opening": "timeout in seconds of the handshake, and then of the first request",
    "idle": "seconds that a connection kept after a POST may wait for the next request, and that "
    "the download of a bundle may pause, beside a second for each KiB of a full write buffer",
    "sending": "timeout in seconds for a full write buffer to be sent",
    "closing": "timeout in seconds of the closing handshake",
    "keepalive": "seconds between pings; a client that misses two is disconnected",
    "buffer": "bytes waiting to be sent before a connection counts as slow",
    "chunk": "events per read of the backlog of a lagging connection",
    "resume": "missed events above which a resume sends a snapshot instead",
    "history": "events of a table above which no history is made over HTTP",
    "held": "requests queued behind one that reads the log",
    "drain": "seconds within which the server has closed after a signal to stop",
}
"""What each of `dealer.gateway.limits.Limits` bounds."""


def default_limits() -> Limits:
    # The gateway imports the websocket library, which a page of help does not need.
    from dealer.gateway.limits import Limits

    return Limits()


def read_limits(pairs: Iterable[str], environ: Mapping[str, str]) -> Limits:
    """Limits from `name=value` pairs and variables; ConfigurationError for a wrong one."""
    limits = default_limits()
    kinds = {limit.name: type(getattr(limits, limit.name)) for limit in fields(limits)}
    given = {
        name: (environ[variable], variable)
        for name in kinds
        if environ.get(variable := f"{LIMIT_VARIABLE}{name.upper()}")
    }
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in kinds:
            raise ConfigurationError(
                f"--limit must be NAME=VALUE, where NAME is one of {', '.join(kinds)}."
            )
        if given.get(name, ("", ""))[1] == (where := f"--limit {name}"):
            raise ConfigurationError(f"{where} is given more than once.")
        given[name] = (value, where)
    values: dict[str, Any] = {
        name: _above_zero(kinds[name], text, where) for name, (text, where) in given.items()
    }
    return replace(limits, **values)


def _above_zero(kind: type[int] | type[float], text: str, where: str) -> int | float:
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not (isfinite(value) and value > 0):
        what = "a whole number" if kind is int else "a number"
        raise ConfigurationError(f"{where} must be {what} above 0, not {text!r}.")
    return value
