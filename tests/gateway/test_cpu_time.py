"""Processor time: an address is charged for the time of the event loop that its requests take."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from dealer.errors import DatabaseFull, Unavailable
from dealer.gateway import Limits
from dealer.gateway.rate_limit import cpu_time
from dealer.gateway.rate_limit.budgets import LONG_STEP, ClientBudget
from dealer.gateway.rate_limit.costs import BYTE_SECONDS, EVENT_SECONDS, MESSAGE_SECONDS
from dealer.gateway.rate_limit.cpu_time import LongAnswers, metered
from dealer.gateway.session import dispatcher
from dealer.proof.tree import leaf_hash
from dealer.service.reading import consistency
from tests.gateway.conftest import TEST_LIMITS, ManualClock
from tests.gateway.http_client import get
from tests.gateway.rpc_client import Refusal, eventually, reason_of, refusal
from tests.gateway.tables import seat_and_shuffle, seat_players

HERE = "127.0.0.1"


class FakeThreadTime:
    """A `thread_time` that advances by `seconds` with each call."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self.seconds
        return self._now


@pytest.fixture
def stop_clocks(stop_clock, monkeypatch):
    """Stops the clock of a gateway, and lets each step of its work take this many seconds."""

    def stop(gateway, *, step: float = 0.0) -> tuple[ManualClock, FakeThreadTime]:
        thread_time = FakeThreadTime(step)
        monkeypatch.setattr(dispatcher, "thread_time", thread_time)
        monkeypatch.setattr(cpu_time, "thread_time", thread_time)
        return stop_clock(gateway), thread_time

    return stop


def budget_of(gateway, address: str = HERE) -> ClientBudget:
    return gateway.context.budgets.client(address, gateway.context.clock())


# Requests


async def test_the_time_of_an_answer_is_charged_to_the_address(
    open_gateway, connect, stop_clocks
) -> None:
    limits = replace(TEST_LIMITS, address_cpu=0.1, address_cpu_burst=1.0)
    gateway = await open_gateway(limits=limits)
    table = await seat_players(connect, gateway, players=1)
    clock, thread_time = stop_clocks(gateway, step=0.8)
    state = table.host.send("table.state")
    await eventually(lambda: budget_of(gateway).busy(clock.now))
    thread_time.seconds = 0.0
    other = await connect(gateway)
    refused = await refusal(other.call("ping"))
    assert (refused.reason, refused.error["data"]["temporary"]) == ("rate_limited", True)
    assert "processor time" in str(refused)
    clock.now += refused.error["data"]["retry_after_ms"] / 1000
    await other.call("ping")
    clock.now += 1.0  # that ping, too, has its price
    assert (await state)["state"]


async def test_the_time_of_a_refused_command_is_charged(open_gateway, connect, stop_clocks) -> None:
    limits = replace(TEST_LIMITS, address_cpu=0.1, address_cpu_burst=1.0)
    gateway = await open_gateway(limits=limits)
    table = await seat_players(connect, gateway, players=1)
    stop_clocks(gateway, step=0.4)
    for _ in range(3):
        assert await reason_of(table.host.call("round.close")) == "no_round"
    assert await reason_of(table.host.call("round.close")) == "rate_limited"


async def test_messages_of_constant_work_have_a_flat_price(
    open_gateway, connect, stop_clocks
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, address_cpu_burst=1.0))
    table = await seat_players(connect, gateway, players=1)
    clock, _ = stop_clocks(gateway, step=0.3)
    budget = budget_of(gateway)
    before = budget.cpu.level(clock.now)
    assert await reason_of(table.players[0].call("deck.draw")) == "no_round"
    short = before - budget.cpu.level(clock.now)
    await table.players[0].call("table.note", kind="chat", text="x" * 200)
    long = before - short - budget.cpu.level(clock.now)
    assert MESSAGE_SECONDS < short < long
    assert long < MESSAGE_SECONDS + EVENT_SECONDS + 500 * BYTE_SECONDS


async def test_a_message_that_cannot_be_read_has_its_price(
    open_gateway, connect, stop_clocks
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, address_cpu_burst=1.0))
    client = await connect(gateway)
    clock, _ = stop_clocks(gateway)
    budget = budget_of(gateway)
    before = budget.cpu.level(clock.now)
    text = "{" + "x" * 5000
    await client.socket.send(text)
    await eventually(lambda: budget.cpu.level(clock.now) < before)
    spent = before - budget.cpu.level(clock.now)
    assert spent == pytest.approx(MESSAGE_SECONDS + BYTE_SECONDS * len(text))


async def test_another_address_is_served_while_one_is_in_debt(
    open_gateway, connect, stop_clocks
) -> None:
    limits = replace(TEST_LIMITS, address_cpu=0.1, address_cpu_burst=1.0)
    gateway = await open_gateway(limits=limits, trusted_proxies=(HERE,))
    stop_clocks(gateway)
    clients = [
        await connect(gateway, additional_headers={"X-Forwarded-For": address})
        for address in ("198.51.100.1", "198.51.100.2")
    ]
    budget_of(gateway, "198.51.100.1").cpu.charge(10.0)
    await refusal(clients[0].call("ping"))
    await clients[1].call("ping")


async def test_the_events_of_a_command_are_charged(open_gateway, connect, stop_clocks) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, address_cpu_burst=1.0))
    table = await seat_and_shuffle(connect, gateway, players=1)
    clock, _ = stop_clocks(gateway)
    budget = budget_of(gateway)
    before = budget.cpu.level(clock.now)
    await table.players[0].call("deck.draw", count=40)
    assert before - budget.cpu.level(clock.now) >= 40 * 20e-6


async def test_the_cost_of_a_hello_grows_with_its_tokens(
    open_gateway, connect, stop_clocks
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, address_rate=1.0, address_burst=100.0))
    client = await connect(gateway)
    stop_clocks(gateway)
    tokens = [{"table": "00" * 16, "token": "host." + "0" * 64}] * 64
    await client.call("session.hello", tokens=tokens)
    await client.call("session.hello", tokens=tokens)
    assert await reason_of(client.call("ping")) == "rate_limited"


async def test_the_default_limits_allow_a_fast_game(open_gateway, connect) -> None:
    """Five connections at a table that plays as quickly as the other limits allow."""
    limits = Limits(drain=6.0, closing=0.5, address_cpu=TEST_LIMITS.address_cpu)
    gateway = await open_gateway(limits=limits)
    table = await seat_and_shuffle(connect, gateway, players=4)
    for _ in range(10):
        await asyncio.gather(*(player.call("deck.draw") for player in table.players))
    assert limits.address_cpu_burst == 2.0


# Catch-ups, snapshots, proofs, downloads


async def test_a_catch_up_waits_until_the_debt_of_its_address_is_paid(
    open_gateway, connect, stop_clocks
) -> None:
    limits = replace(TEST_LIMITS, chunk=4, address_cpu=1.0, address_cpu_burst=1.0)
    gateway = await open_gateway(limits=limits)
    table = await seat_and_shuffle(connect, gateway, players=1)
    spectator = await connect(gateway)
    clock, thread_time = stop_clocks(gateway, step=0.1)
    head = (await spectator.call("table.watch", table=table.id, after=0))["version"]
    await eventually(lambda: budget_of(gateway).busy(clock.now))
    thread_time.seconds = 0.0
    for _ in range(50):
        await asyncio.sleep(0)
    assert await reason_of(spectator.call("ping")) == "rate_limited"
    assert len(spectator.versions) < head
    clock.now += 60.0
    await spectator.until_version(head)
    assert spectator.versions == list(range(1, head + 1))


async def test_an_address_has_two_turns_at_once_and_none_in_debt() -> None:
    clock, limits = ManualClock(1000.0), Limits(address_cpu=1.0, address_cpu_burst=1.0)
    long_answers, budgets = LongAnswers(clock), [ClientBudget(limits, clock.now) for _ in range(2)]
    running, most, may_end = 0, 0, asyncio.Event()

    async def work(budget: ClientBudget) -> None:
        nonlocal running, most
        async with long_answers.permit(budget):
            running += 1
            most = max(most, running)
            await may_end.wait()
            running -= 1

    tasks = [asyncio.create_task(work(budgets[0])) for _ in range(5)]
    await eventually(lambda: running == 2)
    tasks.append(asyncio.create_task(work(budgets[1])))
    await eventually(lambda: running == 3)
    may_end.set()
    await asyncio.gather(*tasks)
    assert most == 3
    budgets[0].cpu.charge(11.0)
    indebted = asyncio.create_task(work(budgets[0]))
    await work(budgets[1])
    assert not indebted.done()
    clock.now += 10.0
    await indebted


async def test_a_draining_server_waits_for_no_debt() -> None:
    clock = ManualClock(1000.0)
    long_answers, budget = LongAnswers(clock), ClientBudget(Limits(), clock.now)
    budget.cpu.charge(1e6)
    waiting = asyncio.create_task(long_answers.pause(budget))
    long_answers.hurry = True
    async with asyncio.timeout(30):
        await waiting


async def test_a_proof_is_computed_in_slices(open_gateway, connect, monkeypatch) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, resume=10))
    table = await seat_and_shuffle(connect, gateway, players=1)
    at_once, most = 0, 0
    ticking: asyncio.Handle

    def count(leaf: bytes) -> bytes:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        return leaf_hash(leaf)

    def turn_of_the_loop() -> None:
        nonlocal at_once, ticking
        at_once = 0
        ticking = asyncio.get_running_loop().call_soon(turn_of_the_loop)

    monkeypatch.setattr(consistency, "leaf_hash", count)
    monkeypatch.setattr(consistency, "BLOCK", 16)
    ticking = asyncio.get_running_loop().call_soon(turn_of_the_loop)
    spectator = await connect(gateway)
    await spectator.call("table.watch", table=table.id, after=1)
    await spectator.until(lambda: spectator.notices("snapshot"))
    ticking.cancel()
    assert spectator.notices("snapshot")[0]["proof"]
    assert 0 < most <= 16


async def test_downloads_of_an_address_in_debt_are_refused_until_it_is_paid(
    open_gateway, connect, stop_clocks
) -> None:
    gateway = await open_gateway(
        limits=replace(TEST_LIMITS, address_cpu=1.0, address_cpu_burst=1.0)
    )
    table = await seat_players(connect, gateway, players=1)
    clock, _ = stop_clocks(gateway)
    budget_of(gateway).cpu.charge(11.0)
    for name in ("bundle.jsonl", "history.txt"):
        refused = await get(gateway.port, f"/tables/{table.id}/{name}")
        assert refused.status == 503
        assert 9 <= int(refused.headers["retry-after"]) <= 11
        assert "processor time" in refused.text
    clock.now += 11.0
    before = budget_of(gateway).cpu.level(clock.now)
    assert (await get(gateway.port, f"/tables/{table.id}/bundle.jsonl")).status == 200
    assert budget_of(gateway).cpu.level(clock.now) <= before


# What is measured


async def test_metered_charges_each_step_and_passes_results_errors_and_cancellation(
    monkeypatch,
) -> None:
    monkeypatch.setattr(cpu_time, "thread_time", FakeThreadTime(LONG_STEP))
    clock, limits = ManualClock(1000.0), Limits(address_cpu=1.0, address_cpu_burst=100.0)
    budget = ClientBudget(limits, clock.now)

    async def answer() -> int:
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await asyncio.create_task(fail())
        return 7

    async def fail() -> None:
        raise Unavailable("not now")

    assert await metered(answer, budget) == 7
    assert budget.cpu.level(clock.now) == pytest.approx(100.0 - 3 * LONG_STEP)

    ended: list[str] = []

    async def cancelled() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    for started in (False, True):
        task = asyncio.create_task(metered(cancelled, budget))
        if started:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended == ["cleaned up"]


# The operator's port and the log


async def test_requests_to_the_operators_port_use_no_database(open_gateway, monkeypatch) -> None:
    gateway = await open_gateway(ops_port=0)
    for method in ("fetch", "read", "head", "run_in_transaction", "run_when_idle", "append"):
        monkeypatch.setattr(gateway.context.service.log, method, None)
    paths = ["/readyz", "/metrics"] * 10
    answers = await asyncio.gather(*(get(gateway.ops_port, path) for path in paths))
    assert {answer.status for answer in answers} == {200}


async def test_pages_of_other_sites_get_no_answer_of_the_operators_port(open_gateway) -> None:
    gateway = await open_gateway(ops_port=0)
    for path in ("/readyz", "/metrics", "/healthz"):
        answer = await get(gateway.ops_port, path, Sec_Fetch_Site="cross-site")
        assert answer.status == 403
    assert (await get(gateway.ops_port, "/healthz", Sec_Fetch_Site="none")).status == 200


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DatabaseFull("The disk is full."), "a request failed"),
        (RuntimeError("a bug"), "internal error"),
    ],
)
async def test_errors_that_clients_cause_are_logged_once_a_second(
    gateway, connect, monkeypatch, caplog, stop_clocks, error: Exception, line: str
) -> None:
    async def fail() -> None:
        raise error

    monkeypatch.setattr(gateway.context.service.lobby, "tables", fail)
    clock, _ = stop_clocks(gateway)
    monkeypatch.setattr(gateway.context.log_throttle, "_clock", clock)
    client = await connect(gateway)
    for _ in range(20):
        await refusal(client.call("table.list"))
    assert [record.getMessage() for record in caplog.records].count(line) == 1
    clock.now += 1.5
    await refusal(client.call("table.list"))
    assert caplog.records[-1].fields["times"] == 20


async def test_lines_name_the_connection_and_the_id_of_a_request(
    gateway, connect, monkeypatch, caplog
) -> None:
    async def fail() -> None:
        raise DatabaseFull("The disk is full.")

    monkeypatch.setattr(gateway.context.service.lobby, "tables", fail)
    monkeypatch.setattr(gateway.context.log_throttle, "_seconds", 0.0)
    client, other = await connect(gateway), await connect(gateway)
    await refusal(client.call("table.list"))
    for id in (41, "a text may be a token"):
        with pytest.raises(Refusal):
            await other.send("table.list", id=id)
    assert len(caplog.records) == 3
    first, second, third = [vars(record)["fields"] for record in caplog.records]
    assert second["connection"] == third["connection"] != first["connection"]
    assert second["id"] == 41
    assert "id" not in third
