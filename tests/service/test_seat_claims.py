"""Seats of other servers' users: one for each, at several nodes and after crashes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dealer.errors import BadToken, Refused, TicketUsed
from dealer.eventlog.seat_subjects import Subject
from dealer.game.commands import Actor, AddNote, CloseTable, LeaveSeat, MoveSeat, TakeSeat
from dealer.game.state import SeatHolder
from dealer.service import LiveTable, Service
from dealer.service.identity.seat_claims import ATTEMPTS, SeatClaim
from dealer.service.identity.service_keys import ServiceKey
from dealer.service.operations.archiver import Archiver
from dealer.service.tables.execution import IdempotencyKey
from tests.harness.damage import change_log
from tests.service.conftest import OpenNodes, OpenService

COUNT = "SELECT count(*) FROM seat_subject"


SHOP = ServiceKey(7, "shop", frozenset({"seat"}))


def claim_of(
    service: Service, live_table: LiveTable, text: str, cmd: str | None = None
) -> SeatClaim:
    key = None if cmd is None else IdempotencyKey("new", cmd)
    service.service_keys._keys = {bytes(32): SHOP}
    ticket = service.tickets.open(live_table, text)
    return service.seat_claims.of_ticket(live_table, text, ticket, key=key)


async def seat(service: Service, table: str, claim: Any, name: str = "Ada") -> SeatHolder:
    """What a join does; `claim` is one, or the text of a ticket."""
    live_table = await service.lifecycle.load(table)
    if isinstance(claim, str):
        claim = claim_of(service, live_table, claim)
    found = await service.seat_claims.find(live_table, claim)
    if found is None:
        found = await service.seat_claims.take(live_table, claim, TakeSeat(name))
    await service.seat_claims.record(live_table, claim, found)
    return found


def make(service: Service, live_table: LiveTable, subject: str | None = "user") -> str:
    text, _ = service.tickets.make(
        live_table,
        SHOP,
        name="Ada",
        seat=None,
        subject=subject,
        bot=False,
        seconds=60,
    )
    return text


def user(service: Service, live_table: LiveTable) -> SeatClaim:
    return service.seat_claims.of_user(live_table, issuer="https://a.example", subject="ada")


async def seats(service: Service, table: str) -> dict[int, str]:
    live_table = await service.lifecycle.load(table)
    return {number: player.name for number, player in live_table.table.seats.items()}


async def test_requests_at_two_nodes_get_one_seat(open_service: OpenService) -> None:
    nodes = [await open_service() for _ in range(2)]
    live_table, _ = await nodes[0].open_table({})
    table = live_table.table_id
    for turn in range(5):
        claim = user(nodes[0], live_table)
        found = await asyncio.gather(*(seat(node, table, claim) for node in nodes * 3))
        assert len(set(found)) == 1
        for node in nodes:
            assert await seats(node, table) == {1: "Ada"}
        leaving = nodes[turn % 2]
        actor = Actor(seat=1, taken_at=found[0].taken_at)
        await leaving.execute(await leaving.lifecycle.load(table), LeaveSeat(actor))


@pytest.mark.parametrize("subject", ["user", None])
async def test_one_ticket_at_two_nodes_is_for_one_request(
    open_service: OpenService, subject: str | None
) -> None:
    nodes = [await open_service() for _ in range(2)]
    live_table, _ = await nodes[0].open_table({})
    table = live_table.table_id
    text = make(nodes[0], live_table, subject)
    outcomes = await asyncio.gather(
        *(seat(node, table, text) for node in nodes * 3), return_exceptions=True
    )
    given = [one for one in outcomes if isinstance(one, SeatHolder)]
    assert len(given) == 1
    assert [type(one) for one in outcomes].count(TicketUsed) == 5
    assert await seats(nodes[1], table) == {1: "Ada"}


@pytest.mark.parametrize("subject", ["user", None])
async def test_a_crash_before_the_row_neither_locks_out_nor_seats_twice(
    open_service: OpenService, subject: str | None
) -> None:
    """The seat is taken and its row is not written; another node is asked again."""
    first, second = await open_service(), await open_service()
    live_table, _ = await first.open_table({})
    table = live_table.table_id
    text = make(first, live_table, subject)
    lost = await first.seat_claims.take(
        live_table, claim_of(first, live_table, text), TakeSeat("Ada")
    )
    again = await seat(second, table, text, "another name")
    assert again == lost
    assert await seats(second, table) == {1: "Ada"}
    with pytest.raises(TicketUsed):
        await seat(first, table, text)


async def test_a_crash_after_the_row_leaves_the_ticket_to_its_request(
    open_service: OpenService,
) -> None:
    first, second = await open_service(), await open_service()
    live_table, _ = await first.open_table({})
    table = live_table.table_id
    text = make(first, live_table)
    found = await seat(first, table, claim_of(first, live_table, text, "the request's own id"))
    there = await second.lifecycle.load(table)
    repeated = claim_of(second, there, text, "the request's own id")
    assert await seat(second, table, repeated) == found
    with pytest.raises(TicketUsed):
        await seat(second, table, claim_of(second, there, text, "another id"))


async def test_seats_without_rows_that_were_left_are_followed(open_service: OpenService) -> None:
    """Each time the server dies between the seat and its row, and then the player leaves."""
    service = await open_service()
    live_table, _ = await service.open_table({})
    claim = user(service, live_table)
    for _ in range(ATTEMPTS + 2):
        taken = await service.seat_claims.take(live_table, claim, TakeSeat("Ada"))
        await service.execute(live_table, LeaveSeat(Actor(seat=1, taken_at=taken.taken_at)))
    await service.log.run_in_transaction(_forget)
    with pytest.raises(Refused, match="changed each time"):
        await seat(service, live_table.table_id, claim)
    last = await seat(service, live_table.table_id, claim)
    assert last.taken_at == live_table.committed == 2 + 2 * (ATTEMPTS + 2)
    assert await service.seat_claims.find(live_table, claim) == last


def _forget(connection: Any) -> None:
    connection.exec_driver_sql("DELETE FROM seat_subject")


async def test_the_seat_of_a_ticket_that_was_left_is_not_given_again(
    open_service: OpenService,
) -> None:
    service = await open_service()
    live_table, _ = await service.open_table({})
    text = make(service, live_table, None)
    claim = claim_of(service, live_table, text, "id")
    taken = await service.seat_claims.take(live_table, claim, TakeSeat("Ada"))
    await service.execute(live_table, LeaveSeat(Actor(seat=1, taken_at=taken.taken_at)))
    with pytest.raises(BadToken, match="was left"):
        await seat(service, live_table.table_id, claim)
    assert not live_table.table.seats


async def test_a_refused_seat_leaves_no_row_but_the_id_of_the_user(
    open_service: OpenService,
) -> None:
    service = await open_service()
    live_table, _ = await service.open_table({})
    for subject, rows in ((None, 0), ("user", 1), ("user", 1)):
        with pytest.raises(Refused):
            await seat(service, live_table.table_id, make(service, live_table, subject), "\u200b")
        assert [row[0] for row in await service.log.fetch(COUNT)] == [rows]


async def test_a_database_does_not_reveal_a_user(open_service: OpenService) -> None:
    """Two tables have different digests of a user of a JWT, and no row has the user's id."""
    service = await open_service()
    digests = set()
    for _ in range(2):
        live_table, _ = await service.open_table({})
        await seat(service, live_table.table_id, user(service, live_table))
    for row in await service.log.fetch("SELECT digest, request, subject FROM seat_subject"):
        digests |= {bytes(row[0]), bytes(row[1])}
        assert row[2] is None
    assert len(digests) == 4


async def test_a_row_that_names_another_seat_gives_none(open_service: OpenService) -> None:
    """Who writes to the database cannot give a user, or a ticket, another player's seat."""
    service = await open_service()
    live_table, _ = await service.open_table({})
    ada = await seat(service, live_table.table_id, user(service, live_table))
    for subject in ("mallory", None):
        text = make(service, live_table, subject)
        mine = claim_of(service, live_table, text, "id")
        own = await seat(service, live_table.table_id, mine, subject or "Eve")
        digests = [digest for digest in (mine.user, mine.ticket) if digest]
        for digest in digests:
            await change_log(
                service.log,
                "UPDATE seat_subject SET seat = ?, version = ? WHERE digest = ?",
                (ada.seat, ada.taken_at, digest),
            )
        with pytest.raises(TicketUsed):
            await service.seat_claims.find(live_table, mine)
        if subject is not None:
            second = claim_of(service, live_table, make(service, live_table, subject), "second")
            assert await service.seat_claims.find(live_table, second) is None
            assert await seat(service, live_table.table_id, second) == own


async def test_the_subject_of_a_seat_is_known_at_each_of_its_versions(
    open_nodes: OpenNodes,
) -> None:
    """Also after moves, at a node that did not take the seat, and from the log alone."""
    one, two = await open_nodes(2)
    live_table, _ = await one.open_table({})
    table = live_table.table_id
    taken = await seat(one, table, make(one, live_table, "4711"))
    for there in (3, 1):
        holder = live_table.table.latest(taken)
        actor = Actor(seat=holder.seat, taken_at=holder.taken_at)
        await one.execute(live_table, MoveSeat(actor, to=there))
    await seat(one, table, make(one, live_table, None), "Bob")
    await seat(one, table, user(one, live_table), "Cleo")
    await one.execute(live_table, MoveSeat(Actor(host=True), to=5, seat=3))  # asks Cleo
    await one.execute(live_table, AddNote(Actor(host=True), "x", "y"))
    await one.execute(live_table, TakeSeat("Dora"))
    versions = [2, 5, 8, 9, 10, 13]
    events = await two.reader.entries(await two.lifecycle.load(table), 0)
    assert [event.version for event in events if event.type == "SeatTaken"] == versions
    for node in (one, two):
        subjects = [await node.feed.subjects.of(live_table.id, number) for number in versions]
        assert subjects == [Subject(SHOP.id, "4711")] * 3 + [None] * 3


async def test_a_restart_and_another_node_know_the_seat(open_nodes: OpenNodes) -> None:
    one, two = await open_nodes(2)
    live_table, _ = await one.open_table({})
    found = await seat(one, live_table.table_id, make(one, live_table))
    there = await two.lifecycle.load(live_table.table_id)
    assert await seat(two, live_table.table_id, make(two, there), "again") == found


async def test_archiving_deletes_the_rows(
    open_service: OpenService, url: str, tmp_path: Path
) -> None:
    service = await open_service()
    closed, _ = await service.open_table({})
    other, _ = await service.open_table({})
    for live_table in (closed, other):
        await seat(service, live_table.table_id, make(service, live_table))
    await service.execute(closed, CloseTable(Actor(host=True)))
    assert [row[0] for row in await service.log.fetch(COUNT)] == [6]
    await Archiver(service.log, url, tmp_path, who="a test", why="").archive(closed.id)
    assert [row[0] for row in await service.log.fetch(COUNT)] == [3]
    claim = claim_of(service, closed, make(service, closed))
    with pytest.raises(Refused, match="archived"):
        await service.seat_claims.record(closed, claim, SeatHolder(1, 2))
    assert [row[0] for row in await service.log.fetch(COUNT)] == [3]
