"""Attacks by players: they cheat, are late or leave during a shuffle, and the server restarts.

The game continues for the others, and the verifier counts what happened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dealer.client import RemoteTable
from dealer.errors import (
    BadRequest,
    BadToken,
    EntropyMismatch,
    EntropyOutOfTurn,
    NoShuffle,
    NotYourSeat,
    Refused,
)
from dealer.proof.round_keys import player_digest
from dealer.proof.verify import Remarks
from tests.harness.malicious_server import (
    WAIT,
    MaliciousServer,
    Pace,
    malicious,
    nonces,
    open_round,
    seated,
)
from tests.harness.table_of_clients import Clients, RecordedClient, client

__all__ = ["malicious"]

MINE = bytes(range(32))


async def refused(kind: type[Refused], player: RecordedClient, method: str, **params: Any) -> None:
    """The command is refused and adds no event."""
    version = player.table.version
    with pytest.raises(kind):
        await player.table.call(method, **params)
    assert player.table.version == version


async def finish_and_verify(malicious: MaliciousServer, clients: Clients) -> Remarks:
    """Draw, close the round and verify; the verifier's counts."""
    for player in clients.players:
        assert len(await player.table.draw(2)) == 2
    await clients.players[0].table.round_close()
    await clients.all_see(lambda table: table.round is None)
    report = await malicious.audit(*clients.players)
    assert report.ok, report.verdicts()
    assert [table.evidence for table in clients.tables] == [None] * len(clients.players)
    return report.remarks


def shuffle(table: RemoteTable) -> Any:
    return None if table.state.round is None else table.state.round.shuffle


def committed(*seats: int) -> Callable[[RemoteTable], bool]:
    return lambda table: set(digests(table)) == set(seats)


def digests(table: RemoteTable) -> dict[int, bytes]:
    round_ = table.state.round
    if round_ is None:
        return {}
    return round_.early_digests if round_.shuffle is None else round_.shuffle.digests


def closed(table: RemoteTable) -> bool:
    return bool(shuffle(table) and shuffle(table).closed_version)


def revealed(*seats: int) -> Callable[[RemoteTable], bool]:
    return lambda table: closed(table) and set(shuffle(table).nonces) == set(seats)


def started(k: int) -> Callable[[RemoteTable], bool]:
    return lambda table: bool(shuffle(table)) and shuffle(table).k == k


def sealed(k: int) -> Callable[[RemoteTable], bool]:
    """Shuffle k is finished."""
    return lambda table: (
        not table.shuffling and table.state.round is not None and table.state.round.k == k + 1
    )


async def rogue_round(clients: Clients, *, honest: int = 1) -> RecordedClient:
    """A round in which the last player's client sends no entropy; that player."""
    rogue = clients.players[-1]
    Pace(rogue)
    await clients.tables[0].round_open(commit_ms=WAIT, reveal_ms=WAIT)
    await clients.all_see(committed(*range(1, honest + 1)))
    return rogue


def own_digest(player: RecordedClient, *, k: int = 0, nonce: bytes = MINE) -> str:
    table = bytes.fromhex(player.table.id)
    return player_digest(table=table, round=1, k=k, seat=player.seat, nonce=nonce).hex()


# Invalid entropy


async def test_a_copied_digest_cannot_be_opened(malicious: MaliciousServer) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        ada = clients.players[0]
        bob = await rogue_round(clients)
        copied = digests(bob.table)[ada.seat]
        await bob.table.call("entropy.commit", round=1, k=0, digest=copied.hex())
        await ada.table.shuffle(wait=False)
        await clients.all_see(revealed(ada.seat))
        shown = shuffle(bob.table).nonces[ada.seat]
        assert shown == nonces(ada)[0]
        await refused(EntropyMismatch, bob, "entropy.reveal", round=1, k=0, nonce=shown.hex())
        malicious.expire_deadline(clients.id)
        await clients.all_see(sealed(1))
        await clients.all_see(committed(ada.seat))
        digest = own_digest(bob, k=2)
        await refused(EntropyOutOfTurn, bob, "entropy.commit", round=1, k=2, digest=digest)
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.shuffles, remarks.voided, remarks.withheld) == (2, 1, 1)
        assert (remarks.left_out, remarks.house_only) == (0, 0)


async def test_a_player_that_withholds_is_counted_and_gives_no_more_entropy(
    malicious: MaliciousServer,
) -> None:
    async with seated(malicious, "Ada", "Bob", "Cleo") as clients:
        ada, bob, _ = clients.players
        cleo = await rogue_round(clients, honest=2)
        await cleo.table.call("entropy.commit", round=1, k=0, digest=own_digest(cleo))
        await ada.table.shuffle(wait=False)
        await clients.all_see(revealed(ada.seat, bob.seat))
        malicious.expire_deadline(clients.id)
        await clients.all_see(sealed(1))
        # The others' nonces were new, and the next shuffle waits for no player.
        for player in (ada, bob):
            assert len(set(nonces(player))) == len(nonces(player)) >= 2
        await clients.all_see(committed(ada.seat, bob.seat))
        await refused(NoShuffle, cleo, "entropy.reveal", round=1, k=0, nonce=MINE.hex())
        await ada.table.shuffle()
        assert ["ShuffleStarted", "EntropyClosed"] in malicious.appends[-4:]
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.shuffles, remarks.voided, remarks.withheld) == (3, 1, 1)
        assert (remarks.left_out, remarks.house_only) == (0, 0)


async def test_a_reveal_before_its_time(malicious: MaliciousServer) -> None:
    """The nonce reaches neither the log nor another player before C1 is signed."""
    async with seated(malicious, "Ada", "Bob") as clients:
        ada = clients.players[0]
        hers = Pace(ada)
        bob = await rogue_round(clients, honest=0)
        await bob.table.call("entropy.commit", round=1, k=0, digest=own_digest(bob))
        early = {"round": 1, "k": 0, "nonce": MINE.hex()}
        await refused(NoShuffle, bob, "entropy.reveal", **early)
        await ada.table.shuffle(wait=False)
        await refused(EntropyOutOfTurn, bob, "entropy.reveal", **early)
        assert MINE.hex() not in "".join(ada.record.frames)
        hers.allow(3)
        await clients.all_see(revealed(ada.seat))
        await refused(EntropyOutOfTurn, bob, "entropy.commit", round=1, k=0, digest=own_digest(bob))
        await bob.table.call("entropy.reveal", **early)
        await clients.all_see(sealed(0))
        await clients.all_see(committed(ada.seat))
        await refused(NoShuffle, bob, "entropy.reveal", **early)
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.shuffles, remarks.voided, remarks.left_out) == (1, 0, 0)


async def test_a_reveal_for_another_seat(malicious: MaliciousServer) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        ada = clients.players[0]
        hers = Pace(ada)
        hers.allow()
        bob = await rogue_round(clients)
        await bob.table.call("entropy.commit", round=1, k=0, digest=own_digest(bob))
        await ada.table.shuffle(wait=False)
        await clients.all_see(closed)
        (true,) = nonces(ada)
        stolen = {"round": 1, "k": 0, "nonce": true.hex()}
        await refused(EntropyMismatch, bob, "entropy.reveal", **stolen)
        await refused(BadRequest, bob, "entropy.reveal", **stolen, seat=ada.seat)
        token = ada.table._session.token or ""
        forged = token[:-1] + ("0" if token[-1] != "0" else "1")
        await refused(BadToken, bob, "entropy.reveal", **stolen, token=forged)
        await bob.table.call("entropy.reveal", round=1, k=0, nonce=MINE.hex())
        await refused(EntropyOutOfTurn, bob, "entropy.reveal", **stolen)
        async with client(malicious.url, "Eve") as eve:
            eve.table = await eve.house.watch(clients.id)
            await refused(NotYourSeat, eve, "entropy.reveal", **stolen)
        hers.allow()
        await clients.all_see(sealed(0))
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.voided, remarks.withheld, remarks.left_out) == (0, 0, 0)


async def test_a_digest_is_given_once_and_for_its_own_shuffle(malicious: MaliciousServer) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        bob = await rogue_round(clients)
        commit = {"round": 1, "k": 0, "digest": own_digest(bob)}
        await refused(EntropyOutOfTurn, bob, "entropy.commit", **commit | {"k": 1})
        await refused(EntropyOutOfTurn, bob, "entropy.commit", **commit | {"round": 2})
        await refused(BadRequest, bob, "entropy.commit", **commit | {"digest": "00" * 31})
        await bob.table.call("entropy.commit", **commit)
        other = own_digest(bob, nonce=bytes(32))
        await refused(EntropyOutOfTurn, bob, "entropy.commit", **commit | {"digest": other})


# No unnecessary waits


async def test_digests_are_sent_early_so_no_shuffle_waits_for_them(
    malicious: MaliciousServer,
) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        ada = clients.players[0]
        await open_round(clients)
        for _ in range(3):
            await ada.table.shuffle()
            await clients.all_see(committed(1, 2))
        starts = [one for one in malicious.appends if "ShuffleStarted" in one]
        assert starts == [["ShuffleStarted", "EntropyClosed"]] * 3
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.shuffles, remarks.left_out, remarks.house_only) == (3, 0, 0)


async def test_a_late_player_is_left_out_of_one_shuffle(malicious: MaliciousServer) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        his = Pace(bob)
        await ada.table.round_open(commit_ms=WAIT, reveal_ms=WAIT)
        await ada.table.shuffle(wait=False)
        await clients.all_see(committed(ada.seat))
        assert not closed(ada.table)
        malicious.expire_deadline(clients.id)
        await clients.all_see(sealed(0))
        his.allow(2)
        await clients.all_see(committed(1, 2))
        await ada.table.shuffle()
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.shuffles, remarks.left_out) == (2, 1)
        assert (remarks.voided, remarks.house_only) == (0, 0)


# Seats that leave during a shuffle


@pytest.mark.parametrize("promised", [False, True])
async def test_a_seat_left_while_digests_are_open(
    malicious: MaliciousServer, promised: bool
) -> None:
    """Its digest is removed; if the shuffle waited only for this seat, the wait ends."""
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        hers, his = Pace(ada), Pace(bob)
        (his if promised else hers).allow()
        await ada.table.round_open(commit_ms=WAIT, reveal_ms=WAIT)
        await clients.all_see(committed(bob.seat if promised else ada.seat))
        await ada.table.shuffle(wait=False)
        await clients.leaves(bob)
        assert closed(ada.table) != promised
        left = next(one for one in malicious.appends if "SeatLeft" in one)
        assert left == (["SeatLeft"] if promised else ["SeatLeft", "EntropyClosed"])
        hers.allow(3)
        await ada.table.until(sealed(0))
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.shuffles, remarks.voided, remarks.left_out) == (1, 0, 0)
        assert (remarks.withheld, remarks.house_only) == (0, 0)


@pytest.mark.parametrize("shown", [False, True])
async def test_a_seat_left_after_the_digests_were_closed(
    malicious: MaliciousServer, shown: bool
) -> None:
    """A revealed nonce enters the shuffle; without it the shuffle is voided and counted."""
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        hers, his = Pace(ada), Pace(bob)
        hers.allow()
        his.allow(2 if shown else 1)
        await open_round(clients)
        await ada.table.shuffle(wait=False)
        await clients.all_see(revealed(bob.seat) if shown else closed)
        await clients.leaves(bob)
        async with client(malicious.url, "Cleo") as cleo:
            await clients.joins(cleo, seat=2)
            hers.allow(9)
            if not shown:
                await clients.all_see(revealed(ada.seat))
                malicious.expire_deadline(clients.id)
            await clients.all_see(sealed(0 if shown else 1))
            remarks = await finish_and_verify(malicious, clients)
            expected = (1, 0, 0) if shown else (2, 1, 1)
            assert (remarks.shuffles, remarks.voided, remarks.withheld) == expected
            assert (remarks.left_out, remarks.house_only) == (0, 0)


async def test_a_shuffle_waits_for_a_player_that_joins_during_it(
    malicious: MaliciousServer,
) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        his = Pace(bob)
        await ada.table.round_open(commit_ms=WAIT, reveal_ms=WAIT)
        await ada.table.shuffle(wait=False)
        async with client(malicious.url, "Cleo") as cleo:
            await clients.joins(cleo, seat=3)
            await clients.all_see(committed(ada.seat, 3))
            his.allow(2)
            await clients.all_see(sealed(0))
            remarks = await finish_and_verify(malicious, clients)
            assert (remarks.left_out, remarks.voided) == (0, 0)


# Restarts


async def restart_between(
    malicious: MaliciousServer, clients: Clients, steps: list[Callable[[], Awaitable[Any]]]
) -> None:
    """Do one step after the other; after each, restart the server, and all clients resume."""
    for number, step in enumerate(steps, 1):
        await step()
        await malicious.restart()
        for one in clients.clients:
            await one.table._session.ask("table.state", {}, changes=False)
            assert one.house._connection.sockets > number


@pytest.mark.parametrize("ahead", [True, False])
async def test_a_shuffle_survives_a_restart_of_the_server_after_each_step(
    malicious: MaliciousServer, ahead: bool
) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        hers, his = Pace(ada), Pace(bob)

        async def opens() -> None:
            await ada.table.round_open(commit_ms=WAIT, reveal_ms=WAIT)

        async def starts() -> None:
            await ada.table.shuffle(wait=False)

        def allowed(pace: Pace, truth: Callable[[RemoteTable], bool]) -> Any:
            async def step() -> None:
                pace.allow()
                await clients.all_see(truth)

            return step

        digests_come = [allowed(hers, committed(1)), allowed(his, committed(1, 2))]
        reveals = [allowed(hers, revealed(1)), allowed(his, sealed(0))]
        first = [*digests_come, starts] if ahead else [starts, *digests_come]
        await restart_between(malicious, clients, [opens, *first, *reveals])
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.shuffles, remarks.voided, remarks.left_out) == (1, 0, 0)
        assert (remarks.withheld, remarks.house_only, remarks.pinned) == (0, 0, True)


async def test_deadlines_pass_while_the_server_is_stopped(malicious: MaliciousServer) -> None:
    """First Bob's digest is missing, then, in the next shuffle, Bob's nonce."""
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        his = Pace(bob)
        await ada.table.round_open(commit_ms=WAIT, reveal_ms=WAIT)
        await ada.table.shuffle(wait=False)
        await clients.all_see(committed(ada.seat))
        await stop_past_the_deadline(malicious)
        await clients.all_see(sealed(0))
        his.allow()
        await clients.all_see(committed(1, 2))
        await ada.table.shuffle(wait=False)
        await clients.all_see(revealed(ada.seat))
        await stop_past_the_deadline(malicious)
        await clients.all_see(sealed(2))
        remarks = await finish_and_verify(malicious, clients)
        assert (remarks.shuffles, remarks.left_out) == (3, 1)
        assert (remarks.voided, remarks.withheld, remarks.house_only) == (1, 1, 0)


async def stop_past_the_deadline(malicious: MaliciousServer) -> None:
    await malicious.close()
    malicious.pass_time()
    await malicious.open()
