"""An internal error of one command, or of one callback, leaves no other one unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from dealer.errors import DatabaseUnavailable, Unavailable
from dealer.game.commands import StartShuffle, TakeSeat
from dealer.service import CommandResult, IdempotencyKey, Service
from dealer.service.tables.execution import CommandExecution
from dealer.service.tables.live_table import LiveTable, TableState
from tests.service.tables import HOST, new_table, shared_table


def fail(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError


class Outcomes:
    """Collects `count` outcomes; `of` gives the callback of each command."""

    def __init__(self, count: int) -> None:
        self.found: dict[str, Any] = {}
        self._count = count
        self._all = asyncio.Event()

    def of(self, name: str) -> Any:
        def done(outcome: Any) -> None:
            assert name not in self.found
            self.found[name] = outcome
            if len(self.found) == self._count:
                self._all.set()

        return done

    async def kinds(self) -> dict[str, type]:
        await self._all.wait()
        return {name: type(outcome) for name, outcome in self.found.items()}


@pytest.fixture
def reported() -> Iterator[list[BaseException]]:
    """The errors that were reported to the loop of the test."""
    errors: list[BaseException] = []
    loop = asyncio.get_event_loop_policy().get_event_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
    yield errors
    loop.set_exception_handler(None)


async def test_each_command_after_a_reload_is_decided_though_one_fails(
    open_service, reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    await two.execute(there, TakeSeat("Dan"))
    outcomes = Outcomes(3)
    for name in ("Eve", "Fay", "Gus"):
        one.submit(here, TakeSeat(name), done=outcomes.of(name))
    apply, calls = one.processor._executor.apply, iter((fail,))

    def fails_once(live_table: LiveTable, execution: CommandExecution) -> bool:
        return next(calls, apply)(live_table, execution)

    monkeypatch.setattr(one.processor._executor, "apply", fails_once)
    assert await outcomes.kinds() == {
        "Eve": Unavailable,
        "Fay": CommandResult,
        "Gus": CommandResult,
    }
    assert [type(error) for error in reported] == [ZeroDivisionError]


@pytest.mark.parametrize("how", ["committed", "decided again", "unavailable"])
async def test_a_callback_that_fails_keeps_no_other_one_waiting(
    open_service, reported, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    outcomes = Outcomes(1)
    if how != "committed":
        await two.execute(there, TakeSeat("Dan"))
    chain = here.chain
    one.submit(here, TakeSeat("Eve"), done=fail)
    one.submit(here, TakeSeat("Fay"), done=outcomes.of("Fay"))
    if how == "unavailable":

        async def down(*_: object) -> NoReturn:
            raise DatabaseUnavailable("down")

        monkeypatch.setattr(one.loader, "advance", down)
    expected = Unavailable if how == "unavailable" else CommandResult
    assert await outcomes.kinds() == {"Fay": expected}
    assert [type(error) for error in reported] == [ZeroDivisionError]
    if how == "committed":
        # It is not reloaded: its events are on disk, and published.
        assert (here.state, here.chain) == (TableState.ACTIVE, chain)


async def test_who_waits_for_a_commit_is_called_after_one_that_fails(service, reported) -> None:
    live_table = await new_table(service)
    called: list[bool] = []
    version = live_table.table.version + 1
    live_table.when_committed(version, fail)
    live_table.when_committed(version, called.append)
    await service.execute(live_table, TakeSeat("Dan"))
    assert called == [True]
    assert live_table.state is TableState.ACTIVE
    assert [type(error) for error in reported] == [ZeroDivisionError]


async def test_a_repetition_is_answered_though_reading_its_events_fails(
    service: Service, reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_table = await new_table(service)
    key = IdempotencyKey("seat", "one", b"content")
    await service.execute(live_table, StartShuffle(HOST), key=key)
    monkeypatch.setattr(service.lifecycle, "catch_up", fail)
    with pytest.raises(Unavailable):
        await service.execute(live_table, StartShuffle(HOST), key=key)
    assert [type(error) for error in reported] == [ZeroDivisionError]


async def test_refusals_are_answered_though_confirming_them_fails(
    open_service, reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await open_service()
    live_table = await new_table(service)
    monkeypatch.setattr(service.log, "shared", True)
    monkeypatch.setattr(service.lifecycle, "catch_up", fail)
    outcomes = Outcomes(2)
    for name in ("one", "two"):
        service.submit(live_table, TakeSeat("player 0"), done=outcomes.of(name))
    assert await outcomes.kinds() == {"one": Unavailable, "two": Unavailable}
    assert [type(error) for error in reported] == [ZeroDivisionError]


async def test_a_table_whose_reload_cannot_be_published_is_loaded_again(
    open_service, reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    await two.execute(there, TakeSeat("Dan"))
    monkeypatch.setattr(one.lifecycle, "_record_mark", fail)
    outcomes = Outcomes(2)
    for name in ("Eve", "Fay"):
        one.submit(here, TakeSeat(name), done=outcomes.of(name))
    assert await outcomes.kinds() == {"Eve": Unavailable, "Fay": Unavailable}
    monkeypatch.undo()
    fresh = await one.lifecycle.load(here.table_id)
    assert fresh is not here
    assert fresh.committed == there.committed
    assert [type(error) for error in reported] == [ZeroDivisionError]
