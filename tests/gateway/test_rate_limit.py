"""The rate limiter alone, at times that the tests set."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import RateLimited, TableFull
from dealer.gateway.limits import Limits
from dealer.gateway.rate_limit.budgets import Bucket, Budgets, ClientBudget

LIMITS = Limits(
    rate=10.0,
    burst=20.0,
    patience=200.0,
    address_rate=100.0,
    address_burst=400.0,
    address_bytes=1000.0,
    address_bytes_burst=10_000.0,
    tables_per_hour=60.0,
    connections_per_address=5,
)

PAUSES = st.lists(st.floats(0.0, 3.0), min_size=1, max_size=60)


def test_a_bucket_refills_at_its_rate() -> None:
    bucket = Bucket(rate=10, burst=2, now=0.0)
    assert [bucket.admit(0.0), bucket.admit(0.0)] == [0.0, 0.0]
    assert bucket.admit(0.0) == pytest.approx(0.1)
    assert bucket.admit(0.05) == pytest.approx(0.05)
    assert bucket.admit(0.11) == 0.0
    assert [bucket.admit(100.0), bucket.admit(100.0)] == [0.0, 0.0]
    assert bucket.admit(100.0) > 0


def test_a_charge_beyond_the_level_is_a_debt() -> None:
    bucket = Bucket(rate=10, burst=2, now=0.0)
    assert bucket.admit(0.0) == 0.0
    bucket.charge(20.0)
    assert bucket.admit(0.0) == pytest.approx(2.0)
    assert bucket.admit(1.9) == pytest.approx(0.1)
    assert bucket.admit(2.01) == 0.0


@given(pauses=PAUSES, rate=st.floats(0.1, 50.0), burst=st.floats(1.0, 50.0))
def test_no_window_grants_more_than_burst_and_rate(pauses, rate, burst) -> None:
    bucket, now, granted = Bucket(rate=rate, burst=burst, now=0.0), 0.0, []
    for pause in pauses:
        now += pause
        while bucket.admit(now) == 0.0:
            granted.append(now)
    for first, begin in enumerate(granted):
        for last, end in enumerate(granted[first:], first):
            assert last - first + 1 <= burst + rate * (end - begin) + 1e-6


@given(pauses=PAUSES, requests=st.integers(1, 40))
def test_the_seconds_to_wait_are_exact(pauses, requests) -> None:
    bucket, now = Bucket(rate=3.0, burst=5.0, now=0.0), 0.0
    for pause in pauses:
        now += pause
        for _ in range(requests):
            if wait := bucket.admit(now):
                assert bucket.admit(now + wait * 0.99 - 1e-6) > 0.0
                assert bucket.wait(1.0, now + wait + 1e-6) == 0.0
                break


@given(data=st.data(), pauses=PAUSES)
def test_reopened_connections_get_no_more_than_one_that_stays_open(data, pauses) -> None:
    """The debt of a closed connection remains with the address."""
    client, now, granted = ClientBudget(LIMITS, 0.0), 0.0, 0
    connection_budget = client.begin_connection(now)
    for pause in pauses:
        now += pause
        if data.draw(st.booleans()):
            client.end_connection(connection_budget, now)
            connection_budget = client.begin_connection(now)
        granted += sum(connection_budget.commands.admit(now) == 0.0 for _ in range(50))
    assert granted <= LIMITS.burst + LIMITS.rate * now + 1e-6


def test_a_new_connection_inherits_the_greatest_debt_of_closed_ones() -> None:
    client = ClientBudget(LIMITS, 0.0)
    deep, shallow = client.begin_connection(0.0), client.begin_connection(0.0)
    deep.commands.charge(30.0)
    shallow.commands.charge(5.0)
    assert client.begin_connection(0.0).debt(0.0) == 0.0, "both are in use"
    client.end_connection(shallow, 0.0)
    client.end_connection(deep, 0.0)
    assert client.begin_connection(0.0) is deep
    assert client.begin_connection(0.0) is shallow
    assert client.begin_connection(0.0).debt(0.0) == 0.0


def test_a_paid_debt_is_not_inherited() -> None:
    client = ClientBudget(LIMITS, 0.0)
    connection_budget = client.begin_connection(0.0)
    connection_budget.commands.charge(20.0)
    client.end_connection(connection_budget, 0.0)
    assert client.begin_connection(2.1) is not connection_budget
    assert client.debt(2.1) == 0.0


def test_the_greatest_debts_of_an_address_are_kept() -> None:
    client = ClientBudget(LIMITS, 0.0)
    leased = [client.begin_connection(0.0) for _ in range(20)]
    for debt, connection_budget in enumerate(leased, 1):
        connection_budget.commands.charge(debt)
        client.end_connection(connection_budget, 0.0)
    inherited = [client.begin_connection(0.0) for _ in range(LIMITS.connections_per_address)]
    assert inherited == leased[:-6:-1]


def test_an_address_is_blocked_until_its_debt_is_paid() -> None:
    client = ClientBudget(LIMITS, 0.0)
    waits = [client.admit(1.0, 0.0) for _ in range(599)]
    assert waits[:400] == [0.0] * 400
    assert all(wait > 0.0 for wait in waits[400:])
    assert client.blocked(0.0) == 0.0
    client.admit(1.0, 0.0)
    assert client.blocked(0.0) == pytest.approx(2.0)
    client.charge(1000.0)
    client.admit(500.0, 1.0)
    assert client.blocked(1.0) == pytest.approx(2.0), "no debt exceeds the patience"
    assert client.blocked(2.9) > 0.0
    assert client.blocked(3.01) == 0.0


def test_clients_that_retry_do_not_block_each_other() -> None:
    """They send twice as much as the address may, and half of it is granted."""
    client, granted = ClientBudget(LIMITS, 0.0), 0
    for tick in range(2000):
        granted += client.admit(1.0, tick / 200) == 0.0
    assert granted == pytest.approx(LIMITS.address_burst + LIMITS.address_rate * 10, rel=0.01)
    assert client.blocked(10.0) == 0.0


@given(paid=st.lists(st.tuples(st.floats(0.0, 5.0), st.integers(1, 3000)), min_size=1, max_size=80))
def test_bytes_exceed_the_budget_by_at_most_one_command(paid) -> None:
    client, now, written = ClientBudget(LIMITS, 0.0), 0.0, 0
    for pause, cost in paid:
        now += pause
        with suppress(RateLimited):
            client.admit_write(cost, now)
            written += cost
        assert written <= LIMITS.address_bytes_burst + LIMITS.address_bytes * now + 3000


def test_a_message_that_writes_is_admitted_once_earlier_writes_are_paid() -> None:
    """Until then it costs its rate and its time."""
    client = ClientBudget(LIMITS, 0.0)
    assert client.admit(1.0, 0.0, seconds=0.25, writes=True, timed=True) == 0.0
    client.written.charge(12_000)
    assert (client.written.tokens, client.cpu.tokens) == (-2_000.0, client.cpu.burst - 0.25)
    with pytest.raises(RateLimited) as refused:
        client.admit(1.0, 1.0, seconds=0.25, writes=True, timed=True)
    assert refused.value.retry_after_ms == pytest.approx(1001, abs=1)
    assert client.written.level(1.0) == -1_000.0
    assert client.cpu.tokens < client.cpu.burst - 0.25
    assert client.admit(1.0, 1.0) == 0.0
    assert client.admit(1.0, 2.5, writes=True) == 0.0
    assert client.written.tokens == pytest.approx(500.0)


def test_the_debt_of_a_player_follows_it_to_another_address() -> None:
    budgets = Budgets(LIMITS)
    here = budgets.client("192.0.2.1", 0.0).begin_connection(0.0)
    budgets.authenticated("Ada's seat", here, 0.0)
    here.commands.charge(25.0)
    there = budgets.client("198.51.100.1", 0.0).begin_connection(0.0)
    assert there.debt(0.0) == 0.0
    budgets.authenticated("Ada's seat", there, 0.0)
    assert there.commands.level(0.0) == -5.0
    other = budgets.client("198.51.100.2", 0.0).begin_connection(0.0)
    budgets.authenticated("Bob's seat", other, 0.0)
    assert other.debt(0.0) == 0.0


def test_the_number_of_remembered_players_is_bounded() -> None:
    budgets = Budgets(LIMITS, players=3)
    for player in range(5):
        connection_budget = budgets.client("192.0.2.1", 0.0).begin_connection(0.0)
        connection_budget.commands.charge(25.0)
        budgets.authenticated(player, connection_budget, 0.0)
    for player, level in ((0, 20.0), (4, -5.0)):
        fresh = budgets.client(f"192.0.2.{player + 2}", 0.0).begin_connection(0.0)
        budgets.authenticated(player, fresh, 0.0)
        assert fresh.commands.level(0.0) == level


@given(
    addresses=st.lists(st.tuples(st.integers(0, 2000), st.floats(0, 300)), max_size=400),
    connected=st.sets(st.integers(0, 2000), max_size=5),
)
def test_the_number_of_remembered_addresses_is_bounded(addresses, connected) -> None:
    budgets = Budgets(LIMITS, clients=16)
    for number in connected:
        budgets.client(str(number), 0.0).connections += 1
    for number, weight in addresses:
        budgets.client(str(number), 0.0).admit(weight, 0.0)
        assert len(budgets) <= 16 + len(connected) + 4
    for number in connected:
        assert budgets.client(str(number), 0.0).connections == 1


def test_the_least_indebted_addresses_are_forgotten_first() -> None:
    budgets = Budgets(LIMITS, clients=100)
    debtor = budgets.client("203.0.113.7", 0.0)
    debtor.admit(500.0, 0.0)
    for number in range(10_000):
        budgets.client(f"2001:db8:0:{number:x}::/64", 0.0).admit(2.0, 0.0)
    assert budgets.client("203.0.113.7", 0.0) is debtor


def test_the_budget_of_tables_refills_over_an_hour() -> None:
    client = ClientBudget(replace(LIMITS, tables_per_hour=60.0), 0.0)
    assert [client.tables.admit(0.0) for _ in range(60)] == [0.0] * 60
    assert client.tables.admit(0.0) == pytest.approx(60.0)
    assert client.tables.admit(60.1) == 0.0


def test_a_refused_table_costs_no_tokens() -> None:
    limits = replace(LIMITS, tables_per_hour=2.0, house_tables_per_hour=30.0)  # three at once
    budgets = Budgets(limits)
    one, other = (budgets.client(f"203.0.113.{number}", 0.0) for number in (1, 2))

    def opening(client: ClientBudget, decks: int = 1) -> str:
        try:
            with client.charged(1000, 0.0, decks=decks):
                return ""
        except RateLimited as refusal:
            return f"{refusal} {refusal.retry_after_ms}"

    for _ in range(3):
        with pytest.raises(TableFull), one.charged(1000, 0.0, decks=1):
            raise TableFull("no")
    assert (opening(one), opening(one)) == ("", "")
    written = one.written.level(0.0)
    assert opening(one).startswith("Your address has opened")
    assert opening(other, decks=5) == ""
    assert opening(other) == opening(budgets.client("203.0.113.3", 0.0))
    assert opening(other).startswith("All clients together have opened")
    assert opening(other).endswith(" 600001")
    assert opening(one).endswith(" 1800001")  # the longer wait of the two
    assert one.written.level(0.0) == written
    assert opening(budgets.key(1, 0.0), decks=0) == ""


def spent(client: ClientBudget, now: float) -> float:
    return client.cpu.burst - client.cpu.level(now)


@pytest.mark.parametrize(
    ("steps", "read", "charged"),
    [
        ([0.0005] * 20, 0.0, 0.01),  # short ones
        ([0.01], 0.0, 0.01 + 0.1),
        ([0.01], 0.009, 0.01 + 0.1),
        ([0.01], 0.011, 0.01),  # the loop was idle in between: no message waited
        ([0.01, 0.01], 0.019, 0.02 + 0.2),  # the message may have come during the first one
        ([2.0], 0.0, 2.0 + 0.5),
    ],
)
def test_a_long_step_costs_more_if_another_client_may_have_waited(
    steps: list[float], read: float, charged: float
) -> None:
    budgets = Budgets(Limits(address_cpu=1e-9, address_cpu_burst=10.0))
    one, other = budgets.client("203.0.113.1", 0.0), budgets.key(1, 0.0)
    now = 0.0
    for seconds in steps:
        now += seconds
        one.step(seconds, now)
    one.admit(1.0, now)  # their own messages have waited for no other client
    assert spent(one, now) == pytest.approx(sum(steps))
    other.admit(1.0, now + read)
    other.admit(1.0, now + read)
    assert spent(one, now) == pytest.approx(charged)
    assert other.cpu.tokens == other.cpu.burst
    one.step(0.01, now + 60.0)
    other.admit(1.0, now + 60.0)
    assert spent(one, now) == pytest.approx(charged + 0.11)


@pytest.mark.parametrize("short", ["messages", "steps"])
def test_short_work_after_a_long_step_does_not_hide_it(short: str) -> None:
    budgets = Budgets(Limits(address_cpu=1e-9, address_cpu_burst=10.0))
    one, other = budgets.client("203.0.113.1", 0.0), budgets.client("203.0.113.2", 0.0)
    for _ in range(100):  # also if there were many long ones before
        one.step(0.002, 0.0)
    one.step(0.1, now := 0.1)
    for _ in range(500):
        now += 0.001
        if short == "steps":
            one.step(0.001, now)
        else:
            one.admit(0.0, now, seconds=0.001)
    other.admit(1.0, now)
    assert spent(one, now) == pytest.approx(0.2 + 0.1 + 0.5 + 100 * 0.004 + 0.5)
