"""The state machine of a live table: each method in each state, and what may assign the state."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import dealer
from dealer.errors import TableArchived, Unavailable
from dealer.game.commands import Actor, CloseRound
from dealer.service.tables.execution import CommandExecution, Outcome
from dealer.service.tables.live_table import TRANSITIONS, LiveTable, TableState

TABLE = bytes(16)
METHODS: dict[str, Callable[[LiveTable], object]] = {
    "begin_append": lambda table: table.begin_append(),
    "append_committed": lambda table: table.append_committed(1, "leaf"),
    "append_lost": lambda table: table.append_lost(),
    "begin_reload": lambda table: table.begin_reload(),
    "adopt": lambda table: table.adopt(live_table()),
    "resume": lambda table: table.resume(),
    "give_up": lambda table: table.give_up(TableArchived("archived")),
}
OWNED = {
    "state", "committed", "in_flight", "failed_reads", "why_unreadable", "leaf", "chain",
    "savepoint",
}  # fmt: skip
"""Members of a live table that only its own methods assign."""


def live_table(state: TableState = TableState.ACTIVE) -> LiveTable:
    return LiveTable(TABLE, TABLE.hex(), state=state)


def test_every_transition_has_a_method() -> None:
    assert METHODS.keys() == TRANSITIONS.keys()


@pytest.mark.parametrize("state", TableState)
@pytest.mark.parametrize("method", METHODS)
def test_each_method_changes_the_state_as_the_table_says(method: str, state: TableState) -> None:
    table = live_table(state)
    expected = TRANSITIONS[method].get(state)
    if expected is None:
        with pytest.raises(RuntimeError, match=f"{method} in state {state}"):
            METHODS[method](table)
        assert table.state is state
    else:
        METHODS[method](table)
        assert table.state is expected


def test_a_reload_is_due_once_no_append_is_in_flight() -> None:
    table = live_table()
    table.begin_append()
    table.begin_append()
    table.append_lost()
    assert not table.reload_due
    table.append_lost()
    assert table.reload_due


def test_an_archived_table_answers_all_waiting_callers() -> None:
    answers: list[Outcome] = []
    committed: list[bool] = []
    table = live_table(TableState.RELOADING)
    table.pending_retries.append(CommandExecution(command=CloseRound(Actor()), done=answers.append))
    table.when_committed(7, committed.append)
    table.give_up(TableArchived("in a file"))
    assert [type(answer) for answer in answers] == [TableArchived]
    assert committed == [False]
    with pytest.raises(TableArchived, match="in a file"):
        table.require_here()


def test_a_void_version_is_answered_before_foreign_events_reach_it() -> None:
    committed: list[bool] = []
    table, fresh = live_table(), live_table()
    table.when_committed(3, committed.append)
    table.begin_reload()
    fresh.committed = 5
    table.adopt(fresh)
    assert committed == [False]
    assert table.committed == 5


async def test_only_a_log_that_cannot_be_read_refuses_those_who_wait() -> None:
    """A version that is void, also while the table is reloaded, is no reason to refuse."""
    table = live_table()
    table.begin_append()
    table.begin_append()
    waiting = asyncio.ensure_future(table.wait_committed(2))
    await asyncio.sleep(0)
    table.append_lost()
    table.append_committed(1, "leaf")
    table.notify_commit_waiters()
    assert not await waiting
    waiting = asyncio.ensure_future(table.wait_committed(2))
    await asyncio.sleep(0)
    table.read_failed()
    with pytest.raises(Unavailable):
        await waiting


def test_only_the_live_table_assigns_its_state() -> None:
    found = []
    for file in Path(dealer.__file__).parent.glob("service/**/*.py"):
        if file.name == "live_table.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            for target in targets:
                if not isinstance(target, ast.Attribute) or target.attr not in OWNED:
                    continue
                if ast.unparse(target) != "row.leaf":  # of an EventRecord
                    found.append((file.name, ast.unparse(node)))
    assert found == []
