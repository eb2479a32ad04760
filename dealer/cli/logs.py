"""What the house writes down about its own work: one line an event, and nothing of the games.

A line says when, how grave, what happened, and about what: `told`, which the code hands over beside
a fixed sentence. No line holds a token, a name, an invitation, a card or a secret. So of what other
libraries say only the first line is taken, and only from a warning on; and of an error that nobody
expected the type and the places in the code, not its text, which might quote what a guest sent.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from traceback import extract_tb
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dealer.errors import DealerError
from dealer.history.printable import harmless

if TYPE_CHECKING:
    from dealer.gateway.seldom import Seldom

OURS = "dealer"
DEEPEST = 8
"""How many places of a traceback are named, the innermost last."""

_Trouble = tuple[type[BaseException], BaseException, TracebackType | None]

log = logging.getLogger(__name__)


def configure(*, format: str, level: str) -> None:
    """Have the process log on standard error, as `json` or `console` lines, from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if format == "json" else ConsoleLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(level)
    logging.captureWarnings(True)


def mistaken(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The loop's handler of errors that nobody awaited; of each kind one line a second."""
    what = str(context.get("message", "")).partition("\n")[0]
    error = context.get("exception")
    _seldom().say_error(error, "the program made a mistake", what=what)


@cache
def _seldom() -> Seldom:
    # Only a server needs it, and the gateway brings the websocket library with it.
    from dealer.gateway.seldom import Seldom

    return Seldom(log, clock=time.monotonic)


class _Lines(logging.Formatter):
    def members(self, record: logging.LogRecord) -> dict[str, Any]:
        """What the line says, in order."""
        ours = record.name == OURS or record.name.startswith(f"{OURS}.")
        said = record.getMessage()
        at = datetime.fromtimestamp(record.created, UTC)
        found: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": said if ours else said.partition("\n")[0],
        }
        if not ours:
            found["logger"] = record.name
        found |= getattr(record, "told", {})
        if record.exc_info and record.exc_info[0] is not None:
            found |= _trouble(record.exc_info)
        return found


class JsonLines(_Lines):
    """One JSON object a line: `at`, `level`, `event`, then what the event is about."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.members(record), ensure_ascii=False, default=str)


class ConsoleLines(_Lines):
    """The same for a person: time, level, event, then name=value."""

    def format(self, record: logging.LogRecord) -> str:
        members = self.members(record)
        at, level, event = (members.pop(name) for name in ("at", "level", "event"))
        rest = "".join(f"  {name}={_shown(value)}" for name, value in members.items())
        return harmless(f"{at}  {level:<7}  {event}{rest}")


def _shown(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text or not text else text


def _trouble(info: _Trouble) -> dict[str, Any]:
    kind, error, trace = info
    places = [f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in extract_tb(trace)]
    told: dict[str, Any] = {"error": kind.__name__, "where": " < ".join(places[-DEEPEST:][::-1])}
    if isinstance(error, DealerError):
        told["says"] = str(error)
    return told
