"""A house that cheats at a running table, and what each of its players does about it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dealer.errors import HouseCheated
from dealer.game.commands import Actor, CommitEntropy, FinishShuffle, RevealEntropy
from dealer.proof.checkpoint import open_note
from dealer.proof.keys import player_digest
from dealer.proof.tree import Tree
from dealer.service import Published, Resident, judge
from tests.whole.crooked import (
    WAIT,
    CrookedHouse,
    caught,
    crooked,
    nonces,
    open_round,
    seated,
    shown_under,
    stays_away,
)
from tests.whole.party import Guest, Party, guest

__all__ = ["crooked"]

SEALED_OTHERWISE = "A card that you were shown is not the one that was sealed before the deal"
ANOTHER_LOG = "The house signed another log than the one that it showed here"
WENT_BACK = "The house went back behind what it had shown of this table"
NO_PROOF = "The house's log does not continue the one that this client saw"
TWO_LOGS = "The house signed two different logs of one length"
HID_ANOTHER = r"What event \d+ hid was not what the secret says"


# A card that is not the one that was sealed


async def test_a_card_swapped_after_the_seal(crooked: CrookedHouse) -> None:
    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        await open_round(guests)
        await ada.table.shuffle()
        round_ = crooked.resident(guests.id).table.round
        assert round_ is not None
        faces, (bottom, *_, top) = round_.faces, round_.cards("deck")
        faces[top], faces[bottom] = faces[bottom], faces[top]
        drawing = asyncio.ensure_future(bob.table.draw())
        evidence = await caught(bob, SEALED_OTHERWISE)
        with pytest.raises(HouseCheated, match=SEALED_OTHERWISE):
            await drawing
        assert evidence.frames[0]["private"]["card"] == faces[top]
        assert '"DeckSealed"' in "".join(evidence.leaves)
        # He gets up; who could not see that card finds it in the round's secret.
        await ada.table.until(lambda table: list(table.seats) == [ada.seat])
        closing = asyncio.ensure_future(ada.table.round_close())
        await caught(ada, HID_ANOTHER)
        await asyncio.gather(closing, return_exceptions=True)
        report = await crooked.audit(ada)
        assert report.fault is not None
        assert report.fault.check == "moves"
        await stays_away(crooked, bob, sentence=SEALED_OTHERWISE)


# Two histories


async def test_one_player_is_told_another_event(crooked: CrookedHouse) -> None:
    """The house signs one tree: who was told something else sees it at the next head."""

    def altered(_: Resident, news: Published) -> Published:
        entries = [
            entry._replace(leaf=entry.leaf.replace('"Cleo"', '"Clio"')) for entry in news.entries
        ]
        return news._replace(entries=entries)

    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        crooked.tell_seat(bob.seat, altered)
        async with guest(crooked.url, "Cleo") as cleo:
            cleo.table = await cleo.house.join(guests.id)
            assert ada.table.seats[3] == "Cleo"
            await bob.table.until(lambda table: table.seats.get(3) == "Clio")
            await ada.table.round_open(entropy="house")
            await ada.table.shuffle()
            evidence = await caught(bob, ANOTHER_LOG)
            assert len(evidence.notes) >= 2
            await ada.table.until(lambda table: 2 not in table.seats)
            assert len(await cleo.table.draw(2)) == 2
            await ada.table.round_close()
            assert (await crooked.audit(ada, cleo)).ok
        await stays_away(crooked, bob, sentence=ANOTHER_LOG)


async def test_two_histories_both_signed(crooked: CrookedHouse, tmp_path: Path) -> None:
    """Each of two players is in a log that holds; they differ where they meet."""
    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        crooked.copy(tmp_path / "other")
        await bob.house.close()
        other = CrookedHouse(tmp_path / "other")
        await other.open()
        try:
            folder = tmp_path / "clients"
            async with guest(other.url, "Bob", folder=folder, seed=2) as there:
                there.table = await there.house.join(guests.id)
                for player in (ada, there):
                    await player.table.round_open(entropy="house")
                    await player.table.shuffle()
                    await player.table.draw(2)
                    await player.table.round_close()
                report = await other.audit(there)
                assert report.ok
                assert (await crooked.audit(ada)).ok
                saved = there.table.checkpoints
        finally:
            await other.close()
        # What one of them saved accuses the bundle of the other.
        crossed = await crooked.audit(ada, there)
        assert crossed.fault is not None
        assert crossed.fault.check == "saved"
        # And who comes over to the other history leaves it.
        async with guest(crooked.url, "Bob", folder=folder, seed=2) as again:
            with pytest.raises(HouseCheated, match=TWO_LOGS):
                await again.house.join(guests.id)
            again.table = there.table
            (evidence,) = again.house._store.table(guests.id).evidence
            assert set(evidence["notes"]) & set(saved)
            size, roots = heads_that_differ(evidence["notes"], ada.table.key, guests.id)
            assert size == there.table.version
            assert len(roots) == 2
            await stays_away(crooked, again, sentence=TWO_LOGS)


def heads_that_differ(notes: list[str], key: bytes | None, table: str) -> tuple[int, set[bytes]]:
    """The size for which two of these notes name different roots, and these; (0, none) if none."""
    assert key is not None
    roots: dict[int, set[bytes]] = {}
    for note in notes:
        size, root = open_note(note, key=key, table=table)
        roots.setdefault(size, set()).add(root)
    return next(((size, two) for size, two in roots.items() if len(two) > 1), (0, set()))


# C1


async def test_c1_taken_after_the_reveals(
    crooked: CrookedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The house would try roots until it likes the order: the tape of the true C1 says so."""
    finish = judge.Judge._finish

    def late(self: Any, flight: Any, round_: Any) -> None:
        flight.resident.c1_root = flight.resident.tree.root()
        finish(self, flight, round_)

    monkeypatch.setattr(judge.Judge, "_finish", late)
    async with seated(crooked, "Ada", "Bob") as guests:
        await play_and_be_found_out(crooked, guests, check="tape")


async def test_another_root_signed_for_one_player(crooked: CrookedHouse) -> None:
    """She holds no C1 with her own tree under it: her bytes stay with her."""

    def resigned(resident: Resident, news: Published) -> Published:
        tree = Tree()
        tree.append(bytes(32))
        notes = [
            (size, crooked.service._judge.sign(resident, size, tree.root()))
            for size, _ in news.notes
        ]
        return news._replace(notes=notes)

    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        await open_round(guests)
        crooked.tell_seat(bob.seat, resigned)
        await ada.table.shuffle(wait=False)
        evidence = await caught(bob, ANOTHER_LOG)
        assert len(evidence.notes) >= 2
        assert shown_under(bob) == [b""]
        # The others' game goes on without him, and everybody can count that.
        await ada.table.until(lambda table: 2 not in table.seats)
        await ada.table.until(lambda table: table.state.round.shuffle.nonces)
        crooked.time_is_up(guests.id)
        await ada.table.sealed()
        await ada.table.round_close()
        remarks = (report := await crooked.audit(ada)).remarks
        assert report.ok
        assert (remarks.shuffles, remarks.voided, remarks.withheld) == (2, 1, 1)
        await stays_away(crooked, bob, sentence=ANOTHER_LOG)


async def test_c1_that_nobody_is_shown(crooked: CrookedHouse) -> None:
    def without_c1(_: Resident, news: Published) -> Published:
        closed = any('"type":"EntropyClosed"' in entry.leaf for entry in news.entries)
        return news._replace(notes=[]) if closed else news

    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        await open_round(guests)
        crooked.on_news(without_c1)
        await ada.table.shuffle(wait=False)
        await guests.all_see(lambda table: table.shuffling)
        crooked.time_is_up(guests.id)
        await guests.all_see(lambda table: table.round == 1 and not table.shuffling)
        assert shown_under(ada) == shown_under(bob) == [b""]
        await ada.table.round_close()
        remarks = (report := await crooked.audit(ada, bob)).remarks
        assert report.ok
        assert (remarks.voided, remarks.withheld, remarks.house_only) == (1, 2, 1)
        for player in (ada, bob):
            (doubt,) = player.table.doubts
            assert "silent in shuffle 0 of round 1, and we could not open our bytes" in doubt


# Digests and bytes


async def test_a_digest_that_is_dropped(crooked: CrookedHouse) -> None:
    """The answer is friendly, the log lacks it: the seat is left out, sees it, and is counted."""
    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        crooked.overhear(CommitEntropy, bob.seat)
        await ada.table.round_open(commit_ms=WAIT, reveal_ms=WAIT)
        await ada.table.shuffle(wait=False)
        await bob.table.until(lambda table: table.shuffling)
        await ada.table.until(lambda table: len(table.state.round.shuffle.digests) == 1)
        crooked.time_is_up(guests.id)
        await guests.all_see(lambda table: not table.shuffling)
        assert bob.table.doubts == ["Shuffle 0 of round 1 goes without our bytes."]
        assert ada.table.doubts == []
        assert shown_under(bob)[0] == b""
        await ada.table.round_close()
        remarks = (report := await crooked.audit(ada, bob)).remarks
        assert report.ok
        assert (remarks.left_out, remarks.voided, remarks.house_only) == (1, 0, 0)


async def test_a_digest_that_is_replaced_in_the_log_and_shown_to_its_owner(
    crooked: CrookedHouse,
) -> None:
    """The house would know all bytes: its own stand at Bob's seat, and he is told they are his."""
    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        forged = player_digest(
            table=bytes.fromhex(guests.id), round=1, k=0, seat=bob.seat, nonce=bytes(32)
        )
        told: list[str] = []
        perform = crooked.service.perform

        def replaced(resident: Resident, command: Any, **options: Any) -> None:
            if isinstance(command, CommitEntropy) and command.actor.seat == bob.seat:
                told.append(command.digest.hex())
                command = CommitEntropy(command.actor, command.round, command.k, forged)
            perform(resident, command, **options)

        def as_his_own(_: Resident, news: Published) -> Published:
            return news._replace(
                entries=[
                    entry._replace(leaf=entry.leaf.replace(forged.hex(), told[-1]))
                    if told
                    else entry
                    for entry in news.entries
                ]
            )

        crooked.service.perform = replaced  # type: ignore[method-assign]
        crooked.tell_seat(bob.seat, as_his_own)
        await open_round(guests)
        await ada.table.shuffle(wait=False)
        evidence = await caught(bob, ANOTHER_LOG)
        assert len(evidence.notes) >= 2
        assert any(told[0] in leaf for leaf in evidence.leaves)
        assert shown_under(bob) == [b""]
        await stays_away(crooked, bob, sentence=ANOTHER_LOG)


async def test_a_digest_that_is_replaced_before_all_eyes(crooked: CrookedHouse) -> None:
    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        forged = CommitEntropy(Actor(seat=bob.seat), 1, 0, bytes(32))
        crooked.overhear(CommitEntropy, bob.seat, instead=forged)
        await open_round(guests)
        await ada.table.shuffle(wait=False)
        await guests.all_see(lambda table: closed(table) and table.state.round.shuffle.nonces)
        assert bob.table.doubts == ["Another digest than ours stands for shuffle 0."]
        assert shown_under(bob) == [b""]
        crooked.time_is_up(guests.id)
        await guests.all_see(lambda table: not table.shuffling)
        await ada.table.round_close()
        remarks = (report := await crooked.audit(ada, bob)).remarks
        assert report.ok
        assert (remarks.voided, remarks.withheld) == (1, 1)


def closed(table: Any) -> bool:
    return table.shuffling and table.state.round.shuffle.closed_version > 0


async def test_a_reveal_that_is_dropped(crooked: CrookedHouse) -> None:
    """The house did not like what the bytes gave: it voids, which is seen and counted."""
    async with seated(crooked, "Ada", "Bob") as guests:
        ada, bob = guests.players
        await open_round(guests)
        crooked.overhear(RevealEntropy, bob.seat)
        await ada.table.shuffle(wait=False)
        await guests.all_see(lambda table: closed(table) and table.state.round.shuffle.nonces)
        crooked.time_is_up(guests.id)
        await guests.all_see(lambda table: not table.shuffling)
        assert "counts us as silent in shuffle 0 of round 1" in bob.table.doubts[0]
        assert len(set(nonces(ada))) == len(nonces(ada)) >= 2  # fresh for each k
        await ada.table.round_close()
        remarks = (report := await crooked.audit(ada, bob)).remarks
        assert report.ok
        assert (remarks.shuffles, remarks.voided, remarks.withheld) == (2, 1, 1)


async def test_bytes_that_are_left_out_of_the_tape(
    crooked: CrookedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = judge.decide

    def without_bob(command: Any, table: Any, secret: Any) -> Any:
        if not isinstance(command, FinishShuffle):
            return decide(command, table, secret)
        shuffle = table.round.shuffle
        true = shuffle.nonces
        shuffle.nonces = true | {2: bytes(32)}
        events = decide(command, table, secret)
        shuffle.nonces = true
        return events

    monkeypatch.setattr(judge, "decide", without_bob)
    async with seated(crooked, "Ada", "Bob") as guests:
        await play_and_be_found_out(crooked, guests, check="tape")


async def play_and_be_found_out(house: CrookedHouse, guests: Party, *, check: str) -> None:
    """A round whose secret, once it is shown, accuses the house before everybody."""
    ada, bob = guests.players
    await open_round(guests)
    await ada.table.shuffle()
    assert len(await bob.table.draw(2)) == 2
    closing = asyncio.ensure_future(ada.table.round_close())
    for player in (ada, bob):
        evidence = await caught(player, HID_ANOTHER)
        assert '"RoundClosed"' in "".join(evidence.leaves) + str(evidence.frames)
    await asyncio.gather(closing, return_exceptions=True)
    report = await house.audit(ada, bob)
    assert report.fault is not None
    assert report.fault.check == check
    for player in (ada, bob):
        await stays_away(house, player, sentence="hid was not what the secret says")


# An older backup


async def play_past_a_backup(guests: Party, house: CrookedHouse, copy: Path) -> None:
    """Cards are drawn that, in the copy, are still to be drawn."""
    ada, bob = guests.players
    await open_round(guests)
    await ada.table.shuffle()
    house.copy(copy)
    await bob.table.draw(2)
    await ada.table.shuffle()
    await bob.table.draw(1)
    await guests.all_caught_up()


async def test_an_older_backup_under_players_who_are_there(
    crooked: CrookedHouse, tmp_path: Path
) -> None:
    async with seated(crooked, "Ada", "Bob") as guests:
        await play_past_a_backup(guests, crooked, tmp_path / "backup")
        await crooked.close()
        crooked.put_back(tmp_path / "backup")
        await crooked.open()
        for player in guests.players:
            # Once the first has got up, the second may meet a log that is longer again.
            evidence = await caught(player, f"{WENT_BACK}|{ANOTHER_LOG}")
            assert len(evidence.notes) >= 2
        for player in guests.players:
            await stays_away(crooked, player, sentence="The house")


@pytest.mark.parametrize(
    ("further", "resume", "sentence"),
    [(0, 10_000, WENT_BACK), (0, 0, WENT_BACK), (80, 10_000, ANOTHER_LOG), (80, 0, NO_PROOF)],
    ids=["shorter", "shorter-snapshot", "longer", "longer-snapshot"],
)
async def test_an_older_backup_under_players_who_come_back(
    crooked: CrookedHouse, tmp_path: Path, further: int, resume: int, sentence: str
) -> None:
    """Whether the house has gone on in its new history or not: what they saved is not in it."""
    async with seated(crooked, "Ada", "Bob") as guests:
        await play_past_a_backup(guests, crooked, tmp_path / "backup")
        saved = {note for player in guests.players for note in player.table.checkpoints}
        for player in guests.players:
            await player.house.close()
        await crooked.close()
        crooked.put_back(tmp_path / "backup")
        await crooked.open(resume=resume)
        table = guests.id
        async with guest(crooked.url, "Cleo") as cleo:
            cleo.table = await cleo.house.join(table)
            for _ in range(further):
                await cleo.table.cut(1)
            for player in guests.players:
                folder = tmp_path / "clients"
                async with guest(crooked.url, player.name, folder=folder) as again:
                    with pytest.raises(HouseCheated, match=sentence):
                        await comes_back(again, table)
                    (evidence,) = again.house._store.table(table).evidence
                    # One head of each history.
                    assert saved & set(evidence["notes"])
                    assert set(evidence["notes"]) - saved
                await stays_away(crooked, player, sentence="The house")


async def comes_back(player: Guest, table: str) -> None:
    """Join; behind a snapshot, the proof that it continues what was saved comes a little later."""
    player.table = await player.house.join(table)
    await player.table.until(lambda _: False)
