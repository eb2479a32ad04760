"""The event loop's time is owed by the address that it was spent on, however few its messages."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from dealer.errors import DatabaseFull, Unavailable
from dealer.gateway import Limits, session, turns
from dealer.gateway.operations import PROBE
from dealer.gateway.rate_limit import ClientBudget
from dealer.gateway.turns import Turns, metered
from dealer.service import past
from tests.gateway.asking import get
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Guest, Refusal, eventually
from tests.gateway.tables import seat_all, shuffled

HERE = "127.0.0.1"


class Clock:
    """The gateway's clock, which stands still until a test moves it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Stopwatch:
    """A `thread_time` by which each stretch takes `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self.seconds
        return self._now


@pytest.fixture
def stopped(monkeypatch):
    """Stops the clock of a gateway, and lets each stretch of its work take so many seconds."""

    def stop(gateway, *, stretch: float = 0.0) -> tuple[Clock, Stopwatch]:
        clock, watch = Clock(), Stopwatch(stretch)
        clock.now = asyncio.get_running_loop().time()
        monkeypatch.setattr(gateway.floor, "clock", clock)
        monkeypatch.setattr(gateway.floor.pump.turns, "_clock", clock)
        monkeypatch.setattr(session, "thread_time", watch)
        monkeypatch.setattr(turns, "thread_time", watch)
        return clock, watch

    return stop


def budget_of(gateway, address: str = HERE) -> ClientBudget:
    return gateway.floor.budgets.client(address, gateway.floor.clock())


async def refusal(guest: Guest, method: str, **params: object) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await guest.ask(method, **params)
    return caught.value


# Requests


async def test_answers_that_take_long_are_paid_for_by_the_address(
    open_gateway, arrive, stopped
) -> None:
    limits = replace(EAGER, address_cpu=0.1, address_cpu_burst=1.0)
    gateway = await open_gateway(limits=limits)
    table = await seat_all(arrive, gateway, players=1)
    clock, watch = stopped(gateway, stretch=0.4)
    asked = table.host.send("table.state")
    await eventually(lambda: budget_of(gateway).busy(clock.now))
    watch.seconds = 0.0
    other = await arrive(gateway)
    refused = await refusal(other, "ping")
    assert (refused.reason, refused.error["data"]["temporary"]) == ("rate_limited", True)
    assert "server's time" in str(refused)
    clock.now += refused.error["data"]["retry_after_ms"] / 1000
    await other.ask("ping")
    assert (await asked)["state"]


async def test_a_refused_command_is_paid_for_too(open_gateway, arrive, stopped) -> None:
    limits = replace(EAGER, address_cpu=0.1, address_cpu_burst=1.0)
    gateway = await open_gateway(limits=limits)
    table = await seat_all(arrive, gateway, players=1)
    stopped(gateway, stretch=0.4)
    for _ in range(3):
        assert (await refusal(table.players[0], "deck.draw")).reason == "no_round"
    assert (await refusal(table.players[0], "deck.draw")).reason == "rate_limited"


async def test_another_address_is_served_meanwhile(open_gateway, arrive, stopped) -> None:
    limits = replace(EAGER, address_cpu=0.1, address_cpu_burst=1.0)
    gateway = await open_gateway(limits=limits, trusted_proxies=(HERE,))
    stopped(gateway)
    guests = [
        await arrive(gateway, additional_headers={"X-Forwarded-For": address})
        for address in ("198.51.100.1", "198.51.100.2")
    ]
    budget_of(gateway, "198.51.100.1").cpu.charge(10.0)
    await refusal(guests[0], "ping")
    await guests[1].ask("ping")


async def test_the_events_of_a_command_are_charged(open_gateway, arrive, stopped) -> None:
    gateway = await open_gateway(limits=replace(EAGER, address_cpu_burst=1.0))
    table = await shuffled(arrive, gateway, players=1)
    clock, _ = stopped(gateway)
    budget = budget_of(gateway)
    before = budget.cpu.level(clock.now)
    await table.players[0].ask("deck.draw", count=40)
    assert before - budget.cpu.level(clock.now) >= 40 * 20e-6


async def test_a_hello_is_weighed_by_its_tokens(open_gateway, arrive, stopped) -> None:
    gateway = await open_gateway(limits=replace(EAGER, address_rate=1.0, address_burst=100.0))
    guest = await arrive(gateway)
    stopped(gateway)
    tokens = [{"table": "00" * 16, "token": "host." + "0" * 64}] * 64
    await guest.ask("session.hello", tokens=tokens)
    await guest.ask("session.hello", tokens=tokens)
    assert (await refusal(guest, "ping")).reason == "rate_limited"


async def test_defaults_let_a_table_play_at_ease(open_gateway, arrive) -> None:
    """Five connections at a table that plays as quickly as the other limits let it."""
    limits = Limits(drain=6.0, closing=0.5, address_cpu=EAGER.address_cpu)
    gateway = await open_gateway(limits=limits)
    table = await shuffled(arrive, gateway, players=4)
    for _ in range(10):
        await asyncio.gather(*(player.ask("deck.draw") for player in table.players))
    assert limits.address_cpu_burst == 2.0


# Catch-ups, snapshots, proofs, downloads


async def test_a_catch_up_waits_until_its_address_has_paid(open_gateway, arrive, stopped) -> None:
    limits = replace(EAGER, chunk=4, address_cpu=1.0, address_cpu_burst=1.0)
    gateway = await open_gateway(limits=limits)
    table = await shuffled(arrive, gateway, players=1)
    watching = await arrive(gateway)
    clock, watch = stopped(gateway, stretch=0.1)
    head = (await watching.ask("table.watch", table=table.id, after=0))["version"]
    await eventually(lambda: budget_of(gateway).busy(clock.now))
    watch.seconds = 0.0
    for _ in range(50):
        await asyncio.sleep(0)
    assert (await refusal(watching, "ping")).reason == "rate_limited"
    assert len(watching.versions) < head
    clock.now += 60.0
    await watching.seen(head)
    assert watching.versions == list(range(1, head + 1))


async def test_two_turns_of_an_address_at_once_and_none_in_debt() -> None:
    clock, limits = Clock(), Limits(address_cpu=1.0, address_cpu_burst=1.0)
    made, budgets = Turns(clock), [ClientBudget(limits, clock.now) for _ in range(2)]
    running, most, go_on = 0, 0, asyncio.Event()

    async def work(budget: ClientBudget) -> None:
        nonlocal running, most
        async with made.turn(budget):
            running += 1
            most = max(most, running)
            await go_on.wait()
            running -= 1

    tasks = [asyncio.create_task(work(budgets[0])) for _ in range(5)]
    await eventually(lambda: running == 2)
    tasks.append(asyncio.create_task(work(budgets[1])))
    await eventually(lambda: running == 3)
    go_on.set()
    await asyncio.gather(*tasks)
    assert most == 3
    budgets[0].cpu.charge(11.0)
    indebted = asyncio.create_task(work(budgets[0]))
    await work(budgets[1])
    assert not indebted.done()
    clock.now += 10.0
    await indebted


async def test_a_server_that_drains_waits_for_no_debt() -> None:
    clock = Clock()
    made, budget = Turns(clock), ClientBudget(Limits(), clock.now)
    budget.cpu.charge(1e6)
    waiting = asyncio.create_task(made.pause(budget))
    made.hurry = True
    async with asyncio.timeout(10):
        await waiting


async def test_a_proof_is_made_in_slices(open_gateway, arrive, monkeypatch) -> None:
    gateway = await open_gateway(limits=replace(EAGER, resume=10))
    table = await shuffled(arrive, gateway, players=1)
    at_once, most = 0, 0
    hashed = past.leaf_hash

    def count(leaf: bytes) -> bytes:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        return hashed(leaf)

    def turn_of_the_loop() -> None:
        nonlocal at_once, ticking
        at_once = 0
        ticking = asyncio.get_running_loop().call_soon(turn_of_the_loop)

    monkeypatch.setattr(past, "leaf_hash", count)
    monkeypatch.setattr(past, "SLICE", 16, raising=False)
    ticking = asyncio.get_running_loop().call_soon(turn_of_the_loop)
    watching = await arrive(gateway)
    await watching.ask("table.watch", table=table.id, after=1)
    await watching.until(lambda: watching.notices("snapshot"))
    ticking.cancel()
    assert watching.notices("snapshot")[0]["proof"]
    assert 0 < most <= 16


async def test_downloads_of_an_address_in_debt_come_later(open_gateway, arrive, stopped) -> None:
    gateway = await open_gateway(limits=replace(EAGER, address_cpu=1.0, address_cpu_burst=1.0))
    table = await seat_all(arrive, gateway, players=1)
    clock, _ = stopped(gateway)
    budget_of(gateway).cpu.charge(11.0)
    for name in ("bundle.jsonl", "history.txt"):
        refused = await get(gateway.port, f"/tables/{table.id}/{name}")
        assert refused.status == 503
        assert 9 <= int(refused.headers["retry-after"]) <= 11
        assert "server's time" in refused.text
    clock.now += 11.0
    before = budget_of(gateway).cpu.level(clock.now)
    assert (await get(gateway.port, f"/tables/{table.id}/bundle.jsonl")).status == 200
    assert budget_of(gateway).cpu.level(clock.now) <= before


# What is measured


async def test_each_step_is_charged_and_nothing_else_changed(monkeypatch) -> None:
    monkeypatch.setattr(turns, "thread_time", Stopwatch(0.5))
    clock, limits = Clock(), Limits(address_cpu=1.0, address_cpu_burst=100.0)
    cpu = ClientBudget(limits, clock.now).cpu

    async def answer() -> int:
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await asyncio.create_task(fail())
        return 7

    async def fail() -> None:
        raise Unavailable("not now")

    assert await metered(answer, cpu) == 7
    assert cpu.level(clock.now) == pytest.approx(100.0 - 3 * 0.5)

    ended: list[str] = []

    async def cancelled() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    for begun in (False, True):
        task = asyncio.create_task(metered(cancelled, cpu))
        if begun:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended == ["cleaned up"]


# The operator's port and the log


async def test_any_number_of_requests_cost_one_probe(open_gateway, monkeypatch) -> None:
    gateway = await open_gateway(ops_port=0)
    log, probes = gateway.floor.service.log, 0
    put = log.put_house

    async def counted(name: str, value: bytes) -> bytes:
        nonlocal probes
        probes += name == PROBE
        return await put(name, value)

    monkeypatch.setattr(log, "put_house", counted)
    monkeypatch.setattr("dealer.gateway.operations.FRESH_SECONDS", 1e9, raising=False)
    paths = ["/readyz", "/metrics"] * 10
    answers = await asyncio.gather(*(get(gateway.ops_port, path) for path in paths))
    assert {answer.status for answer in answers} == {200}
    assert probes == 1
    monkeypatch.setattr("dealer.gateway.operations.FRESH_SECONDS", 0.0)
    assert (await get(gateway.ops_port, "/readyz")).status == 200
    assert probes == 2


async def test_pages_of_other_sites_cause_no_probe(open_gateway, monkeypatch) -> None:
    gateway = await open_gateway(ops_port=0)
    monkeypatch.setattr(gateway.floor.service.log, "put_house", None)
    for path in ("/readyz", "/metrics", "/healthz"):
        answer = await get(gateway.ops_port, path, Sec_Fetch_Site="cross-site")
        assert answer.status == 403
    assert (await get(gateway.ops_port, "/healthz", Sec_Fetch_Site="none")).status == 200


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DatabaseFull("The disk is full."), "a request failed"),
        (RuntimeError("a bug"), "the program made a mistake"),
    ],
)
async def test_errors_that_clients_cause_are_logged_seldom(
    gateway, arrive, monkeypatch, caplog, stopped, error: Exception, line: str
) -> None:
    async def fails() -> None:
        raise error

    monkeypatch.setattr(gateway.floor.service.lobby, "tables", fails)
    clock, _ = stopped(gateway)
    monkeypatch.setattr(gateway.floor.seldom, "_clock", clock)
    guest = await arrive(gateway)
    for _ in range(20):
        await refusal(guest, "table.list")
    assert [record.getMessage() for record in caplog.records].count(line) == 1
    clock.now += 1.5
    await refusal(guest, "table.list")
    assert caplog.records[-1].told["times"] == 20
