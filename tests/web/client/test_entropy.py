"""The JavaScript client's nonces: stored, committed once, revealed only under a signed head."""

from __future__ import annotations

import pytest

from tests.web.client.node_client import JsError
from tests.web.client.scripted_server import scripted_server

pytestmark = pytest.mark.slow


@pytest.fixture
async def scripted(house, clients):
    """Ada is seated in a round with players' bytes, and has sent her digest."""
    async with scripted_server(house, clients) as scripted:
        house.open_round(entropy="players")
        await scripted.enter()
        await scripted.has_requested("entropy.commit")
        yield scripted


FOREIGN_DIGEST = "The log has a digest for our seat in shuffle 0 that is not ours."


def requests_of(scripted, method):
    return [frame["params"] for frame in scripted.requests if frame["method"] == method]


def commit_both(scripted, game, *, own=None):
    """Commit both players' digests and start the shuffle: C1 is due."""
    (given,) = requests_of(scripted, "entropy.commit")
    house = scripted.house
    house.do(game.commit(game.ada, 1, 0, bytes.fromhex(given["digest"]) if own is None else own))
    house.do(game.commit(game.bob, 1, 0, bytes(32)))
    house.do(game.start)
    return bytes.fromhex(given["digest"])


async def doubts(scripted):
    return await scripted.clients.run("return its.ada.doubts")


async def entropy(scripted):
    js = "return its.ada.checks.find(({ name }) => name === 'entropy').state"
    return await scripted.clients.run(js)


async def test_the_nonce_opens_the_digest_and_is_revealed_once(scripted, game):
    digest = commit_both(scripted, game)
    await scripted.send_all()
    await scripted.has_requested("entropy.reveal")
    (given,) = requests_of(scripted, "entropy.reveal")
    nonce = bytes.fromhex(given["nonce"])
    assert scripted.house.secret.player_digest(k=0, seat=1, nonce=nonce) == digest
    assert await entropy(scripted) == "waiting"
    scripted.house.do(game.reveal(game.ada, 1, 0, nonce))
    await scripted.send_all()
    assert await entropy(scripted) == "yes"
    assert (
        len(requests_of(scripted, "entropy.commit"))
        == len(requests_of(scripted, "entropy.reveal"))
        == 1
    )


async def test_no_reveal_without_the_signed_head(scripted, game):
    commit_both(scripted, game)
    note = scripted.house.notes.pop(scripted.house.table.version)
    await scripted.send_all()
    assert requests_of(scripted, "entropy.reveal") == []
    await scripted.note(note)
    await scripted.has_requested("entropy.reveal")


async def test_no_reveal_if_the_own_digest_is_only_in_a_snapshot(scripted, game):
    """A snapshot may claim to have our digest: only a leaf under a head proves it."""
    commit_both(scripted, game)
    await scripted.clients.run("await its.house.close()")
    await scripted.begin_with_snapshot(heads=[])
    assert (
        await scripted.clients.run("return its.ada.state.round.shuffle.closedVersion") is not None
    )
    assert await scripted.clients.run("return its.ada.checkpoints.length") == 1
    assert requests_of(scripted, "entropy.reveal") == []


async def test_a_foreign_digest_for_our_seat_is_doubted(scripted, game):
    commit_both(scripted, game, own=b"\x01" * 32)
    await scripted.send_all()
    assert await doubts(scripted) == [FOREIGN_DIGEST]
    assert requests_of(scripted, "entropy.reveal") == []
    assert await entropy(scripted) == "no"


async def test_being_left_out_is_doubted(scripted, game):
    scripted.house.do(game.commit(game.bob, 1, 0, bytes(32)))
    scripted.house.do(game.start)
    scripted.house.do(game.late(scripted.house.clock + 10_000))
    await scripted.send_all()
    assert await doubts(scripted) == ["Shuffle 0 of round 1 does not use our bytes."]
    assert requests_of(scripted, "entropy.reveal") == []


async def test_a_foreign_digest_is_doubted_while_catching_up(scripted, game):
    """A server that claims to have more events stops the client from sending, not from checking."""
    house = scripted.house
    scripted.answer = {"version": house.table.version + 100}
    await scripted.lose_connection()
    commit_both(scripted, game, own=b"\x01" * 32)
    await scripted.send_all()
    assert await doubts(scripted) == [FOREIGN_DIGEST]
    assert await entropy(scripted) == "no"


async def test_checks_of_a_shuffle_start_again_after_a_snapshot(scripted, game):
    """Our bytes were in the first shuffle; the second one ran while we were disconnected."""
    house, theirs = scripted.house, bytes(32)
    (given,) = requests_of(scripted, "entropy.commit")
    house.do(game.commit(game.ada, 1, 0, bytes.fromhex(given["digest"])))
    digest = house.secret.player_digest(k=0, seat=2, nonce=theirs)
    house.do(game.commit(game.bob, 1, 0, digest))
    house.do(game.start)
    await scripted.send_all()
    await scripted.has_requested("entropy.reveal")
    (given,) = requests_of(scripted, "entropy.reveal")
    house.do(game.reveal(game.ada, 1, 0, bytes.fromhex(given["nonce"])))
    house.do(game.reveal(game.bob, 1, 0, theirs))
    house.finish()
    await scripted.send_all()
    before = house.table.version
    assert await states(scripted) == ["yes", "yes", "yes"]

    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    house.finish()
    scripted.frames, scripted.answer = [], {"reset": True}
    await scripted.lose_connection()
    await scripted.snapshot(house.describe(), proof=house.proof(before))
    await scripted.caught_up()
    assert await states(scripted) == ["unavailable"] * 3
    reasons = "return its.ada.checks.slice(0, 3).map(({ because }) => because)"
    assert await scripted.clients.run(reasons) == ["not_seen"] * 3


async def states(scripted):
    """The checks of a shuffle: our bytes, the commitments, the seal."""
    return await scripted.clients.run("return its.ada.checks.slice(0, 3).map(({ state }) => state)")


async def test_an_unsigned_seal_does_not_pass_yet(dealt, clients):
    async with scripted_server(dealt, clients) as scripted:
        note = dealt.notes.pop(max(dealt.notes))
        await scripted.enter()
        await scripted.caught_up()
        assert (await states(scripted))[2] == "waiting"
        await scripted.note(note)
        js = "await its.ada.until(({ checks }) => checks[2].state === 'yes')"
        await clients.run(js)


async def test_after_withholding_nothing_is_committed(scripted, game):
    commit_both(scripted, game)
    await scripted.send_all()
    await scripted.has_requested("entropy.reveal")  # and the request is lost
    scripted.house.do(game.late(scripted.house.clock + 10_000))
    await scripted.send_all()
    (doubt,) = await doubts(scripted)
    assert "counts us as silent in shuffle 0 of round 1, though our bytes were sent" in doubt
    assert len(requests_of(scripted, "entropy.commit")) == 1


async def test_after_a_restart_the_stored_nonce_is_revealed(scripted, game):
    digest = commit_both(scripted, game)
    await scripted.clients.run("await its.house.close()")
    await scripted.enter()
    await scripted.has_requested("entropy.reveal")
    (given,) = requests_of(scripted, "entropy.reveal")
    nonce = bytes.fromhex(given["nonce"])
    assert scripted.house.secret.player_digest(k=0, seat=1, nonce=nonce) == digest
    assert len(requests_of(scripted, "entropy.commit")) == 1


async def test_two_pages_of_one_browser_commit_at_once(scripted, game):
    """The second page does not see the first one's nonce yet; the server takes the first digest."""
    await scripted.clients.run(
        """
        its.behind = true;
        const { get, set } = its.store;
        its.store = { set, get: (key) => (its.behind && key.includes("nonce") ? null : get(key)) };
        """
    )
    await scripted.enter()
    await scripted.has_requested("entropy.commit", times=2)
    await scripted.clients.run("its.behind = false")
    first, second = (
        bytes.fromhex(one["digest"]) for one in requests_of(scripted, "entropy.commit")
    )
    assert first != second
    scripted.house.do(game.commit(game.ada, 1, 0, first))
    scripted.house.do(game.commit(game.bob, 1, 0, bytes(32)))
    scripted.house.do(game.start)
    await scripted.send_all()
    await scripted.has_requested("entropy.reveal")
    nonce = bytes.fromhex(requests_of(scripted, "entropy.reveal")[0]["nonce"])
    assert scripted.house.secret.player_digest(k=0, seat=1, nonce=nonce) == first
    scripted.house.do(game.reveal(game.ada, 1, 0, nonce))
    await scripted.send_all()
    assert await doubts(scripted) == []
    assert await entropy(scripted) == "yes"


async def test_a_revealed_nonce_is_not_used_in_a_forked_log(scripted, game, house):
    fork = house.fork()
    digest = commit_both(scripted, game)
    await scripted.send_all()
    await scripted.has_requested("entropy.reveal")
    await scripted.clients.run("await its.house.close()")
    # The server was restored from an older backup; the client's heads are lost.
    scripted.house = fork
    await scripted.enter(heads=[])
    await scripted.has_requested("entropy.commit", times=2)
    assert bytes.fromhex(requests_of(scripted, "entropy.commit")[1]["digest"]) != digest
    fork.do(game.commit(game.ada, 1, 0, digest))
    fork.do(game.commit(game.bob, 1, 0, b"\x01" * 32))
    fork.do(game.start)
    await scripted.send_all()
    assert len(requests_of(scripted, "entropy.reveal")) == 1
    assert await doubts(scripted) == ["Our bytes were revealed under another signed head before."]


async def test_a_nonce_is_stored_before_its_digest_is_sent(house, clients):
    """If nothing can be stored, nothing is committed."""
    async with scripted_server(house, clients) as scripted:
        house.open_round(entropy="players")
        await clients.run(
            """
            const kept = client.memoryStore();
            its.store = { get: kept.get, set: (key, value) => {
              if (key.includes("/nonce/")) throw new Error("The disk is full.");
              kept.set(key, value);
            } };
            """
        )
        with pytest.raises(JsError, match=r"ConfigurationError: .* The disk is full"):
            await scripted.enter()
        assert requests_of(scripted, "entropy.commit") == []
