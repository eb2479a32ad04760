"""`dealer` in a process that kills itself when it passes a named point of the code.

    python tests/whole/dies_at.py dealer.eventlog.log:Log.submit begin 3 serve --database …

The point is a function, and a place in it: `begin`, `end`, `before` or `after` with the beginning
of an SQL statement, or `call` with another function. At its third passing the process is gone.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import local
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))


def named(function: str) -> tuple[Any, str, Callable[..., Any]]:
    """What `module:name` names: where it stands, its last name, and itself."""
    module, _, name = function.partition(":")
    *path, last = name.split(".")
    owner: Any = import_module(module)
    for part in path:
        owner = getattr(owner, part)
    return owner, last, inspect.getattr_static(owner, last)


def arm(function: str, place: str, passing: int) -> None:
    """From here on the process dies at the `passing`th time that it comes by."""
    passings = count(1)
    inside = local()

    def pass_by(*_: object) -> None:
        if next(passings) == passing:
            os.kill(os.getpid(), signal.SIGKILL)

    def within(*_: object) -> None:
        if getattr(inside, "depth", 0):
            pass_by()

    when, _, what = place.partition(" ")
    if when in ("begin", "end"):
        _wrap(function, **{when: pass_by})
        return

    def go_in() -> None:
        inside.depth = getattr(inside, "depth", 0) + 1

    def go_out() -> None:
        inside.depth -= 1

    _wrap(function, begin=go_in, end=go_out)
    if when == "call":
        _wrap(what, begin=within)
    else:
        _listen(f"{when}_cursor_execute", what, within)


def _nothing() -> None:
    pass


def _wrap(
    function: str, *, begin: Callable[[], None] = _nothing, end: Callable[[], None] = _nothing
) -> None:
    owner, name, found = named(function)
    plain = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found

    @wraps(plain)
    def sync(*args: Any, **kwargs: Any) -> Any:
        begin()
        try:
            return plain(*args, **kwargs)
        finally:
            end()

    @wraps(plain)
    async def not_sync(*args: Any, **kwargs: Any) -> Any:
        begin()
        try:
            return await plain(*args, **kwargs)
        finally:
            end()

    wrapped: Any = not_sync if inspect.iscoroutinefunction(plain) else sync
    setattr(owner, name, type(found)(wrapped) if plain is not found else wrapped)


def _listen(happening: str, beginning: str, heard: Callable[[], None]) -> None:
    from sqlalchemy import Engine, event

    @event.listens_for(Engine, happening)
    def _(connection: object, cursor: object, sql: str, *_: object) -> None:
        if sql.strip().startswith(beginning):
            heard()


if __name__ == "__main__":
    where, place, passing, *arguments = sys.argv[1:]
    arm(where, place, int(passing))
    sys.argv = ["dealer", *arguments]
    from dealer.cli import main

    main()
