"""Log lines of the server, as JSON or for reading: one per event, without content of the games.

A line has a time, a level, a fixed phrase and fields (`extra={"fields": …}`). No line contains a
token, a name, an invitation, a card or a secret. Therefore messages of other libraries are cut
after their first line and logged only from WARNING, and an unexpected error is logged with its type
and its places in the code, without its text, which could quote data of a client.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from traceback import extract_tb
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from dealer.errors import DealerError
from dealer.game.names import safe_text
from dealer.proof.canonical import one_line

if TYPE_CHECKING:
    from dealer.gateway.observe.log_throttle import LogThrottle

OURS = "dealer"
DEEPEST = 8
"""Maximum number of places of a traceback in a line, the innermost first."""

_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None]

log = logging.getLogger(__name__)


def configure(*, format: str, level: str, insecure_test_decks: bool = False) -> None:
    """Log to standard error, as `json` or `console` lines, from `level`.

    With `insecure_test_decks` every line has that as a field.
    """
    handler = logging.StreamHandler(sys.stderr)
    formatter = JsonLines() if format == "json" else ConsoleLines()
    formatter.bound = {"insecure_test_decks": True} if insecure_test_decks else {}
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(level)
    logging.captureWarnings(True)


def log_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Exception handler of the event loop; one line per second for each kind of error."""
    what = str(context.get("message", "")).partition("\n")[0]
    error = context.get("exception")
    _log_throttle().say_error(error, "internal error", what=what)


@cache
def _log_throttle() -> LogThrottle:
    # Only a server needs it, and the gateway imports the websocket library.
    from dealer.gateway.observe.log_throttle import LogThrottle

    return LogThrottle(log, clock=time.monotonic)


class _Formatter(logging.Formatter):
    bound: Mapping[str, Any] = MappingProxyType({})  # fields of every line

    def members(self, record: logging.LogRecord) -> dict[str, Any]:
        """The members of the line, in order."""
        ours = record.name == OURS or record.name.startswith(f"{OURS}.")
        message = record.getMessage()
        at = datetime.fromtimestamp(record.created, UTC)
        members: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": message if ours else message.partition("\n")[0],
        }
        if not ours:
            members["logger"] = record.name
        members |= {**self.bound, **getattr(record, "fields", {})}
        if record.exc_info and record.exc_info[0] is not None:
            members |= _error_fields(record.exc_info)
        return members


class JsonLines(_Formatter):
    """One JSON object per line: `at`, `level`, `event`, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(json.dumps(self.members(record), ensure_ascii=False, default=str))


class ConsoleLines(_Formatter):
    """Lines for reading: time, level, event, then name=value."""

    def format(self, record: logging.LogRecord) -> str:
        members = self.members(record)
        at, level, event = (members.pop(name) for name in ("at", "level", "event"))
        rest = "".join(f"  {name}={_shown(value)}" for name, value in members.items())
        return safe_text(f"{at}  {level:<7}  {event}{rest}")


def _shown(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text or not text else text


def _error_fields(info: _ExceptionInfo) -> dict[str, Any]:
    kind, error, trace = info
    places = [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in extract_tb(trace)
    ]
    fields: dict[str, Any] = {"error": kind.__name__, "where": " < ".join(places[-DEEPEST:][::-1])}
    if isinstance(error, DealerError):
        fields["says"] = str(error)
    return fields
