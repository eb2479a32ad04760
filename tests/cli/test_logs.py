"""Unhandled errors, as the exception handler of the event loop logs them."""

from __future__ import annotations

import asyncio
import json
import logging

from dealer.cli import logs
from dealer.gateway.observe.log_throttle import LogThrottle


async def test_errors_of_one_kind_are_logged_once_a_second(monkeypatch, caplog) -> None:
    loop, now = asyncio.get_running_loop(), [0.0]
    throttle = LogThrottle(logs.log, clock=lambda: now[0])
    monkeypatch.setattr(logs, "_log_throttle", lambda: throttle)

    def fail(error: Exception, what: str = "deciding a command failed") -> None:
        logs.log_unhandled(loop, {"message": f"{what}\nin detail", "exception": error})

    for _ in range(20):
        fail(RuntimeError("a bug"))
    fail(ValueError("another"))
    fail(RuntimeError("a bug"), "notifying of an append failed")
    assert [record.fields["what"] for record in caplog.records] == [
        "deciding a command failed",
        "deciding a command failed",
        "notifying of an append failed",
    ]
    assert caplog.records[0].exc_info[0] is RuntimeError
    now[0] = 1.5
    fail(RuntimeError("a bug"))
    assert caplog.records[-1].fields["times"] == 20


def test_a_line_of_json_is_one_line_for_every_reader() -> None:
    fields = {"says": "a\x0b\x1c\x85\u2028\u2029b"}
    line = logs.JsonLines().format(
        logging.makeLogRecord({"name": "dealer", "msg": "x", "levelname": "INFO", "fields": fields})
    )
    assert line.splitlines() == [line]
    assert json.loads(line)["says"] == fields["says"]
