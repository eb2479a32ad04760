"""A JavaScript player's bytes: promised once, kept before, shown only under a signed head."""

from __future__ import annotations

import pytest

from tests.web.client.players import JsError
from tests.web.client.stage import on_stage


@pytest.fixture
async def stage(house, players):
    """Ada sits at a small house in a round with players' bytes, and has been heard."""
    async with on_stage(house, players) as stage:
        house.open_round(entropy="players")
        await stage.enter()
        await stage.has_asked("entropy.commit")
        yield stage


def said(stage, method):
    return [frame["params"] for frame in stage.asked if frame["method"] == method]


def promise(stage, game, *, own=None):
    """Both players' digests, and the start: C1 is due."""
    (given,) = said(stage, "entropy.commit")
    house = stage.house
    house.do(game.commit(game.ada, 1, 0, bytes.fromhex(given["digest"]) if own is None else own))
    house.do(game.commit(game.bob, 1, 0, bytes(32)))
    house.do(game.start)
    return bytes.fromhex(given["digest"])


async def doubts(stage):
    return await stage.players.run("return its.ada.doubts")


async def entropy(stage):
    js = "return its.ada.checks.find(({ name }) => name === 'entropy').state"
    return await stage.players.run(js)


async def test_the_bytes_open_the_digest_and_go_once(stage, game):
    digest = promise(stage, game)
    await stage.tell_all()
    await stage.has_asked("entropy.reveal")
    (given,) = said(stage, "entropy.reveal")
    nonce = bytes.fromhex(given["nonce"])
    assert stage.house.secret.player_digest(k=0, seat=1, nonce=nonce) == digest
    assert await entropy(stage) == "waiting"
    stage.house.do(game.reveal(game.ada, 1, 0, nonce))
    await stage.tell_all()
    assert await entropy(stage) == "yes"
    assert len(said(stage, "entropy.commit")) == len(said(stage, "entropy.reveal")) == 1


async def test_no_reveal_without_the_signed_head(stage, game):
    promise(stage, game)
    note = stage.house.notes.pop(stage.house.table.version)
    await stage.tell_all()
    assert said(stage, "entropy.reveal") == []
    await stage.note(note)
    await stage.has_asked("entropy.reveal")


async def test_no_reveal_without_the_own_digest_as_a_leaf(stage, game):
    """A snapshot may say that our digest is there: the head proves it only of leaves."""
    promise(stage, game)
    await stage.players.run("await its.house.close()")
    await stage.begin_with_snapshot(heads=[])
    assert await stage.players.run("return its.ada.state.round.shuffle.closedVersion") is not None
    assert await stage.players.run("return its.ada.checkpoints.length") == 1
    assert said(stage, "entropy.reveal") == []


async def test_a_digest_that_is_not_ours_is_never_opened(stage, game):
    promise(stage, game, own=b"\x01" * 32)
    await stage.tell_all()
    assert await doubts(stage) == ["Another digest than ours stands for shuffle 0."]
    assert said(stage, "entropy.reveal") == []
    assert await entropy(stage) == "no"


async def test_who_is_left_out_doubts(stage, game):
    stage.house.do(game.commit(game.bob, 1, 0, bytes(32)))
    stage.house.do(game.start)
    stage.house.do(game.late(stage.house.clock + 10_000))
    await stage.tell_all()
    assert await doubts(stage) == ["Shuffle 0 of round 1 goes without our bytes."]
    assert said(stage, "entropy.reveal") == []


async def lose_the_line(stage):
    resumes = stage.methods.count("table.resume")
    await stage.hang_up()
    await stage.has_asked("table.resume", times=resumes + 1)


async def test_who_is_kept_behind_sees_a_digest_that_is_not_theirs(stage, game):
    """A house that says that more is to come keeps a client from acting, not from looking."""
    house = stage.house
    stage.answer = {"version": house.table.version + 100}
    await lose_the_line(stage)
    promise(stage, game, own=b"\x01" * 32)
    await stage.tell_all()
    assert await doubts(stage) == ["Another digest than ours stands for shuffle 0."]
    assert await entropy(stage) == "no"


async def test_a_shuffle_behind_a_snapshot_is_not_taken_for_the_one_before(stage, game):
    """Our bytes were in the first; the second ran while the house kept us away."""
    house, theirs = stage.house, bytes(32)
    (given,) = said(stage, "entropy.commit")
    house.do(game.commit(game.ada, 1, 0, bytes.fromhex(given["digest"])))
    digest = house.secret.player_digest(k=0, seat=2, nonce=theirs)
    house.do(game.commit(game.bob, 1, 0, digest))
    house.do(game.start)
    await stage.tell_all()
    await stage.has_asked("entropy.reveal")
    (given,) = said(stage, "entropy.reveal")
    house.do(game.reveal(game.ada, 1, 0, bytes.fromhex(given["nonce"])))
    house.do(game.reveal(game.bob, 1, 0, theirs))
    house.finish()
    await stage.tell_all()
    before = house.table.version
    assert await states(stage) == ["yes", "yes", "yes"]

    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    house.finish()
    stage.frames, stage.answer = [], {"reset": True}
    await lose_the_line(stage)
    await stage.snapshot(house.describe(), proof=house.proof(before))
    await stage.believed()
    assert await states(stage) == ["waiting", "waiting", "waiting"]


async def states(stage):
    """Of what is checked of a shuffle: our bytes, the promises, the seal."""
    return await stage.players.run("return its.ada.checks.slice(0, 3).map(({ state }) => state)")


async def test_a_seal_that_nobody_signed_is_not_held_yet(dealt, players):
    async with on_stage(dealt, players) as stage:
        note = dealt.notes.pop(max(dealt.notes))
        await stage.enter()
        await stage.believed()
        assert (await states(stage))[2] == "waiting"
        await stage.note(note)
        js = "await its.ada.until(({ checks }) => checks[2].state === 'yes')"
        await players.run(js)


async def test_who_withheld_promises_no_more(stage, game):
    promise(stage, game)
    await stage.tell_all()
    await stage.has_asked("entropy.reveal")  # and it is lost on the way
    stage.house.do(game.late(stage.house.clock + 10_000))
    await stage.tell_all()
    (doubt,) = await doubts(stage)
    assert "counts us as silent in shuffle 0 of round 1, though we sent" in doubt
    assert len(said(stage, "entropy.commit")) == 1


async def test_after_a_restart_the_kept_bytes_are_shown(stage, game):
    digest = promise(stage, game)
    await stage.players.run("await its.house.close()")
    await stage.enter()
    await stage.has_asked("entropy.reveal")
    (given,) = said(stage, "entropy.reveal")
    nonce = bytes.fromhex(given["nonce"])
    assert stage.house.secret.player_digest(k=0, seat=1, nonce=nonce) == digest
    assert len(said(stage, "entropy.commit")) == 1


async def test_two_pages_of_one_browser_that_draw_at_once(stage, game):
    """The second does not see yet what the first has kept; the house takes the first's promise."""
    await stage.players.run(
        """
        its.behind = true;
        const { get, set } = its.store;
        its.store = { set, get: (key) => (its.behind && key.includes("nonce") ? null : get(key)) };
        """
    )
    await stage.enter()
    await stage.has_asked("entropy.commit", times=2)
    await stage.players.run("its.behind = false")
    first, second = (bytes.fromhex(one["digest"]) for one in said(stage, "entropy.commit"))
    assert first != second
    stage.house.do(game.commit(game.ada, 1, 0, first))
    stage.house.do(game.commit(game.bob, 1, 0, bytes(32)))
    stage.house.do(game.start)
    await stage.tell_all()
    await stage.has_asked("entropy.reveal")
    nonce = bytes.fromhex(said(stage, "entropy.reveal")[0]["nonce"])
    assert stage.house.secret.player_digest(k=0, seat=1, nonce=nonce) == first
    stage.house.do(game.reveal(game.ada, 1, 0, nonce))
    await stage.tell_all()
    assert await doubts(stage) == []
    assert await entropy(stage) == "yes"


async def test_bytes_that_were_shown_are_neither_shown_nor_promised_in_another_history(
    stage, game, house
):
    fork = house.fork()
    digest = promise(stage, game)
    await stage.tell_all()
    await stage.has_asked("entropy.reveal")
    await stage.players.run("await its.house.close()")
    # The house was put back; the heads that would betray it are lost.
    stage.house = fork
    await stage.enter(heads=[])
    await stage.has_asked("entropy.commit", times=2)
    assert bytes.fromhex(said(stage, "entropy.commit")[1]["digest"]) != digest
    fork.do(game.commit(game.ada, 1, 0, digest))
    fork.do(game.commit(game.bob, 1, 0, b"\x01" * 32))
    fork.do(game.start)
    await stage.tell_all()
    assert len(said(stage, "entropy.reveal")) == 1
    assert await doubts(stage) == ["Our bytes were shown under another signed head before."]


async def test_bytes_are_kept_before_the_promise_leaves(house, players):
    """Where nothing can be kept, nothing is promised."""
    async with on_stage(house, players) as stage:
        house.open_round(entropy="players")
        await players.run(
            """
            const kept = client.memoryStore();
            its.store = { get: kept.get, set: (key, value) => {
              if (key.includes("/nonce/")) throw new Error("The disk is full.");
              kept.set(key, value);
            } };
            """
        )
        with pytest.raises(JsError, match=r"SetupError: .* The disk is full"):
            await stage.enter()
        assert said(stage, "entropy.commit") == []
