"""Runs `dealer` in a process that kills itself when it reaches a named point of the code.

    python tests/harness/dies_at.py dealer.eventlog.writer:Writer.submit begin 3 serve --database …

The point is a function and a position in it: `begin`, `end`, `before` or `after` with the first
words of an SQL statement, or `call` with another function. The process sends itself SIGKILL when
it reaches the point for the third time.
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
    """The owner of the function `module:name`, the function's last name, and the function."""
    module, _, name = function.partition(":")
    *path, last = name.split(".")
    owner: Any = import_module(module)
    for part in path:
        owner = getattr(owner, part)
    return owner, last, inspect.getattr_static(owner, last)


def arm(function: str, place: str, nth: int) -> None:
    """Arrange that the process kills itself when it reaches the point for the nth time."""
    passes = count(1)
    inside = local()

    def reach(*_: object) -> None:
        if next(passes) == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    def reach_inside(*_: object) -> None:
        if getattr(inside, "depth", 0):
            reach()

    when, _, what = place.partition(" ")
    if when in ("begin", "end"):
        replace(function, *wrapped(function, **{when: reach}))
        return

    def enter() -> None:
        inside.depth = getattr(inside, "depth", 0) + 1

    def leave() -> None:
        inside.depth -= 1

    replace(function, *wrapped(function, begin=enter, end=leave))
    if when == "call":
        replace(what, *wrapped(what, begin=reach_inside))
    else:
        _listen(when, what, reach_inside)


def replace(function: str, owner: Any, name: str, wrapper: Any) -> None:
    """Put the wrapper where the function is.

    Named in the module that defines it, it is replaced also in each module that imported the
    function; named in another module, in that one alone.
    """
    found = named(function)[2]
    setattr(owner, name, wrapper)
    if getattr(found, "__module__", None) != function.partition(":")[0]:
        return
    for module in list(sys.modules.values()):
        for attribute, value in list(vars(module).items()):
            if value is found:
                setattr(module, attribute, wrapper)


def _no_op() -> None:
    pass


def wrapped(
    function: str, *, begin: Callable[[], None] = _no_op, end: Callable[[], None] = _no_op
) -> tuple[Any, str, Any]:
    """The owner of the function `module:name`, its name, and what calls `begin`, it and `end`."""
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

    wrapper: Any = not_sync if inspect.iscoroutinefunction(plain) else sync
    method: Any = type(found)
    return owner, name, method(wrapper) if plain is not found else wrapper


def _listen(when: str, beginning: str, callback: Callable[[], None]) -> None:
    from tests.harness.statements import watch

    def check(sql: str) -> None:
        if sql.strip().startswith(beginning):
            callback()

    watch("before" if when == "before" else "after", check)


if __name__ == "__main__":
    where, place, nth, *arguments = sys.argv[1:]
    arm(where, place, int(nth))
    sys.argv = ["dealer", *arguments]
    from dealer.cli import main

    main()
