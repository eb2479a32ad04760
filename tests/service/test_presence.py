"""Shared presence and cosignatures of several nodes, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dealer.errors import BadRequest
from dealer.eventlog.nodes import Attendance, Heartbeat, forget
from dealer.game.commands import CloseTable, TakeSeat
from dealer.proof.checkpoint import Cosigner, cosigners, read_checkpoint
from dealer.service import CommitNotice, LiveTable, Service
from dealer.service.nodes import presence as module
from dealer.service.nodes.presence import EXPIRY_SECONDS, SharedPresence
from dealer.service.reading.checkpoints import COSIGNABLE
from tests.service.tables import HOST, new_table, shared_table

ANN = Attendance(frozenset({(1, 2)}), 1)
COSIGNERS = [Cosigner(bytes([number]) * 32) for number in range(1, 5)]


async def exchange(service: Service, *followed: LiveTable) -> None:
    """One poll of a node, with what it writes."""
    await service.presence.exchange(followed)
    if service.presence._writing is not None:
        await service.presence._writing


async def rows(service: Service) -> list[Any]:
    return list(map(tuple, await service.log.fetch("SELECT table_id, node FROM presence")))


async def test_a_node_reads_the_connections_of_another(open_service) -> None:
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    changed: list[LiveTable] = []
    two.presence.on_change(changed.append)
    one.presence.report(here, ANN)
    await exchange(one, here)
    await exchange(two, there)
    assert (two.presence.elsewhere(there), changed) == (ANN, [there])
    assert one.presence.elsewhere(here) == Attendance(), "its own connections are not elsewhere"
    await exchange(two, there)
    assert changed == [there], "nothing changed since"
    one.presence.report(here, Attendance(frozenset(), 3))
    await exchange(one, here)
    await exchange(two, there)
    assert two.presence.elsewhere(there) == Attendance(frozenset(), 3)
    one.presence.report(here, None)
    await exchange(one)
    await exchange(two, there)
    assert two.presence.elsewhere(there) == Attendance()
    assert await rows(one) == []


async def test_a_node_without_connections_writes_nothing(open_service) -> None:
    one = await open_service()
    here = await new_table(one)
    for _ in range(3):
        await exchange(one, here)
    assert one.presence._writing is None
    one.presence.report(here, ANN)
    await exchange(one, here)
    first = one.presence._writing
    await exchange(one, here)
    assert one.presence._writing is first, "no heartbeat is due, and nothing changed"


async def test_connections_that_end_while_they_are_written_are_not_kept(open_service) -> None:
    """Else the other nodes would see the players as present for as long as this node runs."""
    one = await open_service()
    here = await new_table(one)
    one.presence.report(here, ANN)
    await one.presence.exchange([here])
    await asyncio.sleep(0)  # the write begins
    one.presence.report(here, None)
    assert one.presence._writing is not None
    await one.presence._writing
    assert len(await rows(one)) == 1
    await exchange(one)
    assert await rows(one) == []


async def test_an_end_whose_writing_was_cancelled_is_written_later(open_service) -> None:
    """Else the next heartbeat would write that the player is there."""
    one = await open_service()
    here = await new_table(one)
    one.presence.report(here, ANN)
    await exchange(one, here)
    one.presence.report(here, None)
    await one.presence.exchange([here])
    await asyncio.sleep(0)  # the write begins
    await one.presence.close()
    one.presence._beat_at -= module.BEAT_SECONDS
    await exchange(one, here)
    assert await rows(one) == []


async def test_a_node_that_closes_leaves_no_rows(open_service) -> None:
    one, two = await open_service(), await open_service()
    here = await new_table(one)
    one.presence.report(here, ANN)
    await exchange(one, here)
    assert len(await rows(two)) == 1
    await one.close()
    assert await rows(two) == []
    assert await two.log.fetch("SELECT id FROM node") == []


async def test_a_node_that_was_forgotten_writes_all_its_rows_again(
    open_service, monkeypatch
) -> None:
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    one.presence.report(here, ANN)
    await exchange(one, here)
    await forget(two.log, [one.presence._node])
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.0)
    await exchange(one, here)
    await exchange(two, there)
    assert two.presence.elsewhere(there) == ANN


async def test_the_rows_of_a_dead_node_are_deleted(open_service, monkeypatch) -> None:
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    one.presence.report(here, ANN)
    await exchange(one, here)
    monkeypatch.setattr(module, "FORGET_SECONDS", -1.0)
    await exchange(two, there)
    two.presence.report(there, Attendance(frozenset({(2, 3)})))
    await exchange(two, there)
    assert [node for _, node in await rows(two)] == [two.presence._node]


def test_a_node_is_alive_as_long_as_its_heartbeat_moves() -> None:
    shared = SharedPresence(None)  # type: ignore[arg-type]

    def alive(at: int, age: int, *, now: float) -> bool:
        shared._update_peers([Heartbeat(b"peer", at, age)], now=now)
        return shared._peers[b"peer"].silent < EXPIRY_SECONDS

    assert not alive(0, 3_600_000, now=1), "a row that a dead node left long ago"
    assert alive(3_600_000, 0, now=2)
    assert alive(1_000, 3_600_000, now=3), "the database's clock was set back, and it still moves"
    assert alive(2_000, -3_600_000, now=4)
    assert alive(2_000, 1_000, now=7), "time without polls does not count"
    assert alive(2_000, 2_000, now=60)
    assert alive(2_000, 0, now=61)
    assert not alive(2_000, 0, now=62), "five seconds of polls without a new heartbeat"
    shared._update_peers([], now=99)
    assert alive(5_000, 100, now=100), "another node with a new heartbeat"


# Cosignatures


async def table_with_cosigners(service: Service) -> LiveTable:
    live_table, _ = await service.open_table({})
    for number, cosigner in enumerate(COSIGNERS, 1):
        await service.execute(live_table, TakeSeat(f"player {number}", key=cosigner.public_key))
    return live_table


async def lines_of(service: Service, live_table: LiveTable) -> list[str]:
    size, note = await service.checkpoints.checkpoint(live_table)
    return [cosigner.cosign(note, time=1_800_000_000 + size) for cosigner in COSIGNERS]


async def test_all_cosignatures_are_stored_together(service: Service, monkeypatch) -> None:
    here = await table_with_cosigners(service)
    notices: list[CommitNotice] = []
    lines = await lines_of(service, here)
    service.notices.listen(lambda _, notice: notices.append(notice))
    puts, put_note = [], service.log.put_checkpoint

    def put_checkpoint(*note):
        puts.append(note)
        return put_note(*note)

    monkeypatch.setattr(service.log, "put_checkpoint", put_checkpoint)
    # They arrive together, however long the database took to find what each of them signs.
    found, find = asyncio.Barrier(len(lines)), service.checkpoints.find_cosignable

    async def find_with_the_others(*arguments):
        result = await find(*arguments)
        await found.wait()
        return result

    monkeypatch.setattr(service.checkpoints, "find_cosignable", find_with_the_others)
    done = await asyncio.gather(*(service.checkpoints.cosign(here, line) for line in lines))
    assert {size for size, _ in done} == {here.committed}
    assert len(puts) == 1
    (notice,) = notices
    assert notice.notes == [done[0]]
    assert await service.log.newest_checkpoint(here.id) == done[0]
    keys = [cosigner.public_key for cosigner in COSIGNERS]
    assert cosigners(read_checkpoint(done[0][1]), keys=keys) == keys


async def test_a_repeated_cosignature_writes_nothing(service: Service) -> None:
    here = await table_with_cosigners(service)
    size, note = await service.checkpoints.checkpoint(here)
    first = await service.checkpoints.cosign(here, COSIGNERS[0].cosign(note, time=1))
    again = await service.checkpoints.cosign(here, COSIGNERS[0].cosign(note, time=2))
    assert again == first
    assert await service.log.heads_and_cosigned([here.id]) == {here.id: (size, 1)}


async def test_a_closed_table_takes_cosignatures_of_its_latest_checkpoints(
    service: Service,
) -> None:
    here = await table_with_cosigners(service)
    early = await lines_of(service, here)
    for number in range(COSIGNABLE - 2):
        await service.execute(here, TakeSeat(f"late {number}"))
        await service.checkpoints.checkpoint(here)
    await service.execute(here, CloseTable(HOST))
    size, _ = await service.checkpoints.cosign(here, (await lines_of(service, here))[0])
    assert size == here.committed
    assert (await service.checkpoints.cosign(here, early[0]))[0] == 5
    with pytest.raises(BadRequest):
        await service.checkpoints.cosign(here, "nonsense")


async def test_a_cosignature_is_pushed_at_other_nodes_by_the_poll_alone(open_service) -> None:
    one, two = await open_service(), await open_service()
    here = await table_with_cosigners(one)
    lines = await lines_of(one, here)
    there = await two.lifecycle.load(here.table_id)
    notices: list[CommitNotice] = []
    two.notices.listen(lambda _, notice: notices.append(notice))
    await two.head_poller.check([there])
    assert notices == []
    done = await one.checkpoints.cosign(here, lines[0])
    await two.head_poller.check([there])
    await two.head_poller.check([there])
    assert [notice.notes for notice in notices] == [[done]]
    # Cosignatures attached at both nodes at once reach both.
    others: list[CommitNotice] = []
    one.notices.listen(lambda _, notice: others.append(notice))
    await asyncio.gather(
        one.checkpoints.cosign(here, lines[1]), two.checkpoints.cosign(there, lines[2])
    )
    await one.head_poller.check([here])
    await two.head_poller.check([there])
    newest = await one.log.newest_checkpoint(here.id)
    assert newest is not None
    assert newest[1].count("— player/") == 3
    assert others[-1].notes == notices[-1].notes == [newest]


async def test_a_table_is_shared_while_another_node_has_any_connection_there(open_service) -> None:
    """Even one that is neither a seat nor a spectator, such as a host's."""
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    assert not one.presence.alone(here.id), "nothing was read yet"
    await exchange(one, here)
    assert one.presence.alone(here.id)
    two.presence.report(there, Attendance())
    await exchange(two, there)
    await exchange(one, here)
    assert not one.presence.alone(here.id)
    two.presence.report(there, None)
    await exchange(two, there)
    await exchange(one, here)
    assert one.presence.alone(here.id)
    await exchange(one)
    assert not one.presence.alone(here.id), "it is no longer followed"


async def test_a_hint_of_another_node_counts_until_its_row_can_be_read(
    open_service, monkeypatch
) -> None:
    one = await open_service()
    here = await new_table(one)
    await exchange(one, here)
    one.head_poller.on_hint({here.id})
    await exchange(one, here)
    assert not one.presence.alone(here.id)
    monkeypatch.setattr(module, "HINTED_SECONDS", 0.0)
    one.head_poller.on_hint({here.id})
    await exchange(one, here)
    assert one.presence.alone(here.id)


async def test_a_row_is_deleted_whose_first_write_a_stop_ends(open_service) -> None:
    one, two = await open_service(), await open_service()
    here = await new_table(one)
    one.presence.report(here, ANN)
    await one.presence.exchange([here])
    await asyncio.sleep(0)  # the write begins
    await one.presence.close()
    assert await rows(two) == []
