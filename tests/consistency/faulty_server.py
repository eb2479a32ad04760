"""`dealer` with a clock that a test moves, and with one planted lie for the checkers to find.

`DEALER_TEST_CLOCK` names a file with the seconds that the wall clock is wrong by;
`DEALER_TEST_LIE` is one of `LIES`. Both are read by this program alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.cli import main
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.session.answers import Answers
from dealer.gateway.session.dispatcher import Dispatcher
from dealer.gateway.wire import results
from dealer.proof.checkpoint import Signer
from dealer.service import CommitNotice, LiveTable, clock

CLOCK, LIE = "DEALER_TEST_CLOCK", "DEALER_TEST_LIE"
EVERY = 25
"""Of the requests or answers that a lie concerns, one in so many is a lie."""

SEATED = 450
"""The version of a run's tables by which its clients sit: what they refuse at once is no trial."""


class MovedClock:
    """`time`, with a `time_ns` that is wrong by what the file says."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def time_ns(self) -> int:
        return time.time_ns() + int(float(self._file.read_text() or 0) * 1e9)


def lost_append() -> None:
    """A draw is granted and not appended, as if the log had dropped it after the commit."""
    receive = Dispatcher.receive
    count = 0

    def lying(self: Dispatcher, data: bytes) -> None:
        nonlocal count
        asked = json.loads(data)
        params = asked.get("params", {})
        live_table = self.session.context.service.tables.get(params.get("table") or "")
        if asked.get("method") == "deck.draw" and params.get("count") == 1 and live_table:
            count += 1
            state = live_table.table
            if count % EVERY == 0 and state.round is not None:
                slot = len(state.round.stacks["deck"]) - 1
                answer = {"cards": ["As"], "slots": [slot], "version": state.version + 1}
                made = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
                self.session.answers.send(json.dumps(made).encode())
                return
        receive(self, data)

    Dispatcher.receive = lying  # type: ignore[method-assign]


def doubled_command() -> None:
    """A command that is sent again is executed again."""
    receive = Dispatcher.receive
    seen: dict[str, int] = {}

    def lying(self: Dispatcher, data: bytes) -> None:
        asked = json.loads(data)
        params = asked.get("params", {})
        if asked.get("method") == "deck.draw" and "cmd" in params:
            times = seen[params["cmd"]] = seen.get(params["cmd"], 0) + 1
            if times > 1:
                params["cmd"] += f".{times}"
        receive(self, json.dumps(asked).encode())

    Dispatcher.receive = lying  # type: ignore[method-assign]


def stale_read() -> None:
    """The state of a table is sometimes that of an earlier question."""
    send = Answers.send_result
    earlier: dict[str, Any] = {}
    count = 0

    def lying(self: Answers, call: Any, result: Any) -> None:
        nonlocal count
        if isinstance(result, results.State):
            count += 1
            kept = earlier.setdefault(result.table, result)
            if count % EVERY == 0:
                result = kept
            else:
                earlier[result.table] = result
        send(self, call, result)

    Answers.send_result = lying  # type: ignore[method-assign]


def forked_head() -> None:
    """One head in so many of a table that is played at is signed over another tree."""
    sign = Signer.sign
    count = 0

    def lying(self: Signer, *, origin: str, size: int, root: bytes) -> str:
        nonlocal count
        count += size > SEATED
        forked = count % EVERY == EVERY - 1 and size > SEATED
        return sign(self, origin=origin, size=size, root=root[::-1] if forked else root)

    Signer.sign = lying  # type: ignore[method-assign]


def lost_push() -> None:
    """The events of one commit in so many are sent to no spectator, who is taken to have them."""
    publish = Broadcaster.publish
    count = 0

    def lying(self: Broadcaster, live_table: LiveTable, notice: CommitNotice) -> None:
        nonlocal count
        watching = [one for one in live_table.subscribers if one.only_watches()]
        count += bool(watching and notice.entries)
        if count % EVERY or not watching or not notice.entries:
            publish(self, live_table, notice)
            return
        live_table.subscribers.difference_update(watching)
        publish(self, live_table, notice)
        live_table.subscribers.update(watching)
        for one in watching:
            one.cursor = notice.entries[-1].version

    Broadcaster.publish = lying  # type: ignore[method-assign]


LIES: dict[str, Callable[[], None]] = {
    "lost append": lost_append,
    "doubled command": doubled_command,
    "stale read": stale_read,
    "lost push": lost_push,
    "forked head": forked_head,
}


if __name__ == "__main__":
    if file := os.environ.get(CLOCK):
        clock.time = MovedClock(Path(file))  # type: ignore[attr-defined, assignment]
    if lie := os.environ.get(LIE):
        LIES[lie]()
    main(sys.argv[1:])
