"""Attacks by the house: it cheats at a running table, and the players' clients detect it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dealer.errors import HouseCheated
from dealer.game.commands import Actor, CommitEntropy, FinishShuffle, RevealEntropy
from dealer.game.decide import decide
from dealer.proof.checkpoint import open_note
from dealer.proof.round_keys import player_digest
from dealer.proof.tree import Tree
from dealer.service import CommitNotice, LiveTable
from dealer.service.commands import executor
from dealer.service.tables.execution import CommandExecution
from tests.harness.malicious_server import (
    WAIT,
    MaliciousServer,
    detects_cheating,
    malicious,
    nonces,
    open_round,
    refuses_table,
    revealed_under_roots,
    seated,
)
from tests.harness.table_of_clients import Clients, RecordedClient, client

__all__ = ["malicious"]

NOT_THE_SEALED_CARD = "A card that you were shown is not the one that was sealed before the deal"
ANOTHER_LOG = "The house signed another log than the one that it showed here"
WENT_BACK = "The server showed an older log than it had shown"
NO_PROOF = "The server's log does not continue the log that this client saw"
TWO_LOGS = "The house signed two different logs of one length"
HID_ANOTHER = "The house's secret, now revealed, contradicts the round"


# A card that is not the sealed one


async def test_a_card_swapped_after_the_seal(malicious: MaliciousServer) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        await open_round(clients)
        await ada.table.shuffle()
        round_ = malicious.live_table(clients.id).table.round
        assert round_ is not None
        faces, (bottom, *_, top) = round_.faces, round_.cards("deck")
        faces[top], faces[bottom] = faces[bottom], faces[top]
        drawing = asyncio.ensure_future(bob.table.draw())
        evidence = await detects_cheating(bob, NOT_THE_SEALED_CARD)
        with pytest.raises(HouseCheated, match=NOT_THE_SEALED_CARD):
            await drawing
        assert evidence.frames[0]["private"]["card"] == faces[top]
        assert '"DeckSealed"' in "".join(evidence.leaves)
        # He leaves; the players that could not see that card find it in the round's secret.
        await ada.table.until(lambda table: list(table.seats) == [ada.seat])
        closing = asyncio.ensure_future(ada.table.round_close())
        await detects_cheating(ada, HID_ANOTHER)
        await asyncio.gather(closing, return_exceptions=True)
        report = await malicious.audit(ada)
        assert report.fault is not None
        assert report.fault.check == "moves"
        await refuses_table(malicious, bob, sentence=NOT_THE_SEALED_CARD)


# Two histories


async def test_one_player_is_shown_another_event(malicious: MaliciousServer) -> None:
    """The house signs one tree: a player that got another event detects it at the next head."""

    def alter(_: LiveTable, notice: CommitNotice) -> CommitNotice:
        entries = [
            replace(entry, leaf=entry.leaf.replace(f'"at":{entry.at}', f'"at":{entry.at + 1}'))
            for entry in notice.entries
        ]
        return replace(notice, entries=entries)

    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        malicious.change_notices_of_seat(bob.seat, alter)
        async with client(malicious.url, "Cleo") as cleo:
            cleo.table = await cleo.house.join(clients.id)
            assert ada.table.seats[3] == "Cleo"
            await bob.table.until(lambda table: table.seats.get(3) == "Cleo")
            await ada.table.round_open(entropy="house")
            await ada.table.shuffle()
            evidence = await detects_cheating(bob, ANOTHER_LOG)
            assert len(evidence.notes) >= 2
            await ada.table.until(lambda table: 2 not in table.seats)
            assert len(await cleo.table.draw(2)) == 2
            await ada.table.round_close()
            assert (await malicious.audit(ada, cleo)).ok
        await refuses_table(malicious, bob, sentence=ANOTHER_LOG)


async def test_two_histories_both_signed(malicious: MaliciousServer, tmp_path: Path) -> None:
    """Each of two players has a consistent log; the difference shows when they compare."""
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        malicious.copy(tmp_path / "other")
        await bob.house.close()
        other = MaliciousServer(tmp_path / "other")
        await other.open()
        try:
            folder = tmp_path / "clients"
            async with client(other.url, "Bob", folder=folder, seed=2) as moved:
                moved.table = await moved.house.join(clients.id)
                for player in (ada, moved):
                    await player.table.round_open(entropy="house")
                    await player.table.shuffle()
                    await player.table.draw(2)
                    await player.table.round_close()
                report = await other.audit(moved)
                assert report.ok
                assert (await malicious.audit(ada)).ok
                saved = moved.table.checkpoints
        finally:
            await other.close()
        # A checkpoint that one of them saved contradicts the bundle of the other.
        crossed = await malicious.audit(ada, moved)
        assert crossed.fault is not None
        assert crossed.fault.check == "saved"
        # A player that is moved to the other history leaves it.
        async with client(malicious.url, "Bob", folder=folder, seed=2) as again:
            with pytest.raises(HouseCheated, match=TWO_LOGS):
                await again.house.join(clients.id)
            again.table = moved.table
            (evidence,) = again.house._store.table(clients.id).evidence
            assert set(evidence["notes"]) & set(saved)
            size, roots = heads_that_differ(evidence["notes"], ada.table.key, clients.id)
            assert size == moved.table.version
            assert len(roots) == 2
            await refuses_table(malicious, again, sentence=TWO_LOGS)


def heads_that_differ(notes: list[str], key: bytes | None, table: str) -> tuple[int, set[bytes]]:
    """The size for which notes have different roots, and these roots; (0, empty set) if none."""
    assert key is not None
    roots: dict[int, set[bytes]] = {}
    for note in notes:
        size, root = open_note(note, key=key, table=table)
        roots.setdefault(size, set()).add(root)
    return next(((size, two) for size, two in roots.items() if len(two) > 1), (0, set()))


# C1


async def test_c1_taken_after_the_reveals(
    malicious: MaliciousServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The house could try roots until the order suits it; the tape of the true C1 reveals that."""
    finish = executor.CommandExecutor._finish

    def late(self: Any, execution: Any, source: Any, at: int) -> None:
        execution.live_table.c1_root = execution.live_table.tree.root()
        finish(self, execution, source, at)

    monkeypatch.setattr(executor.CommandExecutor, "_finish", late)
    async with seated(malicious, "Ada", "Bob") as clients:
        await play_and_be_detected(malicious, clients, check="tape")


async def test_another_root_signed_for_one_player(malicious: MaliciousServer) -> None:
    """Without a C1 over her own tree she does not reveal her nonce."""

    def sign_another_root(live_table: LiveTable, notice: CommitNotice) -> CommitNotice:
        tree = Tree()
        tree.append(bytes(32))
        notes = [
            (size, malicious.service.executor.sign(live_table, size, tree.root()))
            for size, _ in notice.notes
        ]
        return replace(notice, notes=notes)

    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        await open_round(clients)
        malicious.change_notices_of_seat(bob.seat, sign_another_root)
        await ada.table.shuffle(wait=False)
        evidence = await detects_cheating(bob, ANOTHER_LOG)
        assert len(evidence.notes) >= 2
        assert revealed_under_roots(bob) == [b""]
        # The game continues without him, and the left-out seat is counted.
        await ada.table.until(lambda table: 2 not in table.seats)
        await ada.table.until(revealed)
        malicious.expire_deadline(clients.id)
        await ada.table.sealed()
        await ada.table.round_close()
        remarks = (report := await malicious.audit(ada)).remarks
        assert report.ok
        assert (remarks.shuffles, remarks.voided, remarks.withheld) == (2, 1, 1)
        await refuses_table(malicious, bob, sentence=ANOTHER_LOG)


async def test_c1_that_no_player_is_shown(malicious: MaliciousServer) -> None:
    def without_c1(_: LiveTable, notice: CommitNotice) -> CommitNotice:
        closed = any('"type":"EntropyClosed"' in entry.leaf for entry in notice.entries)
        return replace(notice, notes=[]) if closed else notice

    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        await open_round(clients)
        malicious.change_notices(without_c1)
        await ada.table.shuffle(wait=False)
        await clients.all_see(lambda table: table.shuffling)
        malicious.expire_deadline(clients.id)
        await clients.all_see(lambda table: table.round == 1 and not table.shuffling)
        assert revealed_under_roots(ada) == revealed_under_roots(bob) == [b""]
        await ada.table.round_close()
        remarks = (report := await malicious.audit(ada, bob)).remarks
        assert report.ok
        assert (remarks.voided, remarks.withheld, remarks.house_only) == (1, 2, 1)
        for player in (ada, bob):
            (doubt,) = player.table.doubts
            assert (
                "withheld our bytes in shuffle 0 of round 1, and we could not reveal our bytes"
                in doubt
            )


# Digests and nonces


async def test_a_digest_that_is_dropped(malicious: MaliciousServer) -> None:
    """The digest is acknowledged but not logged: the seat is left out, detects that, is counted."""
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        malicious.intercept(CommitEntropy, bob.seat)
        await ada.table.round_open(commit_ms=WAIT, reveal_ms=WAIT)
        await ada.table.shuffle(wait=False)
        await bob.table.until(lambda table: table.shuffling)
        await ada.table.until(lambda table: len(current_shuffle(table).digests) == 1)
        malicious.expire_deadline(clients.id)
        await clients.all_see(lambda table: not table.shuffling)
        assert bob.table.doubts == ["Shuffle 0 of round 1 does not use our bytes."]
        assert ada.table.doubts == []
        assert revealed_under_roots(bob)[0] == b""
        await ada.table.round_close()
        remarks = (report := await malicious.audit(ada, bob)).remarks
        assert report.ok
        assert (remarks.left_out, remarks.voided, remarks.house_only) == (1, 0, 0)


async def test_a_digest_that_is_replaced_in_the_log_and_shown_to_its_owner(
    malicious: MaliciousServer,
) -> None:
    """The house logs its own nonce at Bob's seat and acknowledges it as his."""
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        forged = player_digest(
            table=bytes.fromhex(clients.id), round=1, k=0, seat=bob.seat, nonce=bytes(32)
        )
        digests: list[str] = []
        submit = malicious.service.processor.submit

        def replace_digest(live_table: LiveTable, execution: CommandExecution) -> None:
            command = execution.command
            if isinstance(command, CommitEntropy) and command.actor.seat == bob.seat:
                digests.append(command.digest.hex())
                execution.command = CommitEntropy(command.actor, command.round, command.k, forged)
            submit(live_table, execution)

        def show_his_digest(_: LiveTable, notice: CommitNotice) -> CommitNotice:
            return replace(
                notice,
                entries=[
                    replace(entry, leaf=entry.leaf.replace(forged.hex(), digests[-1]))
                    if digests
                    else entry
                    for entry in notice.entries
                ],
            )

        malicious.service.processor.submit = replace_digest  # type: ignore[method-assign]
        malicious.change_notices_of_seat(bob.seat, show_his_digest)
        await open_round(clients)
        await ada.table.shuffle(wait=False)
        evidence = await detects_cheating(bob, ANOTHER_LOG)
        assert len(evidence.notes) >= 2
        assert any(digests[0] in leaf for leaf in evidence.leaves)
        assert revealed_under_roots(bob) == [b""]
        await refuses_table(malicious, bob, sentence=ANOTHER_LOG)


async def test_a_digest_that_is_replaced_for_all_players(malicious: MaliciousServer) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        forged = CommitEntropy(Actor(seat=bob.seat), 1, 0, bytes(32))
        malicious.intercept(CommitEntropy, bob.seat, instead=forged)
        await open_round(clients)
        await ada.table.shuffle(wait=False)
        await clients.all_see(lambda table: closed(table) and revealed(table))
        assert bob.table.doubts == ["Shuffle 0 has another digest than ours."]
        assert revealed_under_roots(bob) == [b""]
        malicious.expire_deadline(clients.id)
        await clients.all_see(lambda table: not table.shuffling)
        await ada.table.round_close()
        remarks = (report := await malicious.audit(ada, bob)).remarks
        assert report.ok
        assert (remarks.voided, remarks.withheld) == (1, 1)


def current_shuffle(table: Any) -> Any:
    return table.state.round.shuffle


def closed(table: Any) -> bool:
    return table.shuffling and current_shuffle(table).closed_version > 0


def revealed(table: Any) -> bool:
    return bool(current_shuffle(table).nonces)


async def test_a_reveal_that_is_dropped(malicious: MaliciousServer) -> None:
    """The house voids a shuffle to avoid its result; players see that, and verifiers count it."""
    async with seated(malicious, "Ada", "Bob") as clients:
        ada, bob = clients.players
        await open_round(clients)
        malicious.intercept(RevealEntropy, bob.seat)
        await ada.table.shuffle(wait=False)
        await clients.all_see(lambda table: closed(table) and revealed(table))
        malicious.expire_deadline(clients.id)
        await clients.all_see(lambda table: not table.shuffling)
        assert "recorded that we withheld our bytes in shuffle 0 of round 1" in bob.table.doubts[0]
        assert len(set(nonces(ada))) == len(nonces(ada)) >= 2  # new for each k
        await ada.table.round_close()
        remarks = (report := await malicious.audit(ada, bob)).remarks
        assert report.ok
        assert (remarks.shuffles, remarks.voided, remarks.withheld) == (2, 1, 1)


async def test_bytes_that_are_left_out_of_the_tape(
    malicious: MaliciousServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_bob(command: Any, table: Any, secret: Any) -> Any:
        if not isinstance(command, FinishShuffle):
            return decide(command, table, secret)
        shuffle = table.round.shuffle
        true = shuffle.nonces
        shuffle.nonces = true | {2: bytes(32)}
        events = decide(command, table, secret)
        shuffle.nonces = true
        return events

    monkeypatch.setattr(executor, "decide", without_bob)
    async with seated(malicious, "Ada", "Bob") as clients:
        await play_and_be_detected(malicious, clients, check="tape")


async def play_and_be_detected(malicious: MaliciousServer, clients: Clients, *, check: str) -> None:
    """Play a round whose published secret proves to every player that the house cheated."""
    ada, bob = clients.players
    await open_round(clients)
    await ada.table.shuffle()
    assert len(await bob.table.draw(2)) == 2
    closing = asyncio.ensure_future(ada.table.round_close())
    for player in (ada, bob):
        evidence = await detects_cheating(player, HID_ANOTHER)
        assert '"RoundClosed"' in "".join(evidence.leaves) + str(evidence.frames)
    await asyncio.gather(closing, return_exceptions=True)
    report = await malicious.audit(ada, bob)
    assert report.fault is not None
    assert report.fault.check == check
    for player in (ada, bob):
        await refuses_table(malicious, player, sentence="contradicts the round")


# An older backup


async def play_past_a_backup(clients: Clients, malicious: MaliciousServer, copy: Path) -> None:
    """Copy the log, then draw cards that are still in the deck in the copy."""
    ada, bob = clients.players
    await open_round(clients)
    await ada.table.shuffle()
    malicious.copy(copy)
    await bob.table.draw(2)
    await ada.table.shuffle()
    await bob.table.draw(1)
    await clients.all_caught_up()


async def test_an_older_backup_under_connected_players(
    malicious: MaliciousServer, tmp_path: Path
) -> None:
    async with seated(malicious, "Ada", "Bob") as clients:
        await play_past_a_backup(clients, malicious, tmp_path / "backup")
        await malicious.close()
        malicious.restore(tmp_path / "backup")
        await malicious.open()
        for player in clients.players:
            # Once the first has left, the second may see a log that is longer again.
            evidence = await detects_cheating(player, f"{WENT_BACK}|{ANOTHER_LOG}")
            assert len(evidence.notes) >= 2
        for player in clients.players:
            await refuses_table(malicious, player, sentence=f"{WENT_BACK}|{ANOTHER_LOG}")


@pytest.mark.parametrize(
    ("further", "resume", "sentence"),
    [(0, 10_000, WENT_BACK), (0, 0, WENT_BACK), (80, 10_000, ANOTHER_LOG), (80, 0, NO_PROOF)],
    ids=["shorter", "shorter-snapshot", "longer", "longer-snapshot"],
)
async def test_an_older_backup_under_returning_players(
    malicious: MaliciousServer, tmp_path: Path, further: int, resume: int, sentence: str
) -> None:
    """The players' saved checkpoints contradict the restored log, continued or not."""
    async with seated(malicious, "Ada", "Bob") as clients:
        await play_past_a_backup(clients, malicious, tmp_path / "backup")
        saved = {note for player in clients.players for note in player.table.checkpoints}
        for player in clients.players:
            await player.house.close()
        await malicious.close()
        malicious.restore(tmp_path / "backup")
        await malicious.open(resume=resume)
        table = clients.id
        async with client(malicious.url, "Cleo") as cleo:
            cleo.table = await cleo.house.join(table)
            for _ in range(further):
                await cleo.table.cut(1)
            for player in clients.players:
                folder = tmp_path / "clients"
                async with client(malicious.url, player.name, folder=folder) as again:
                    with pytest.raises(HouseCheated, match=sentence):
                        await rejoin(again, table)
                    (evidence,) = again.house._store.table(table).evidence
                    # One head of each history.
                    assert saved & set(evidence["notes"])
                    assert set(evidence["notes"]) - saved
                await refuses_table(malicious, player, sentence=sentence)


async def rejoin(player: RecordedClient, table: str) -> None:
    """Join; after a snapshot, the consistency proof with the saved head comes a little later."""
    player.table = await player.house.join(table)
    await player.table.until(lambda _: False)
