"""The JavaScript client detects every kind of cheating by a server."""

from __future__ import annotations

import asyncio
from copy import deepcopy

import pytest

from dealer.game.commands import Draw, Move, Show, TakeSeat
from dealer.game.events import CardDrawn, EntropyRevealed, RoundClosed
from dealer.proof.checkpoint import Cosigner
from tests.client.conftest import other_card
from tests.proof.log_builder import cosignature
from tests.web.client.node_client import JsError
from tests.web.client.scripted_server import scripted_server

pytestmark = pytest.mark.slow


@pytest.fixture
async def scripted(dealt, clients):
    async with scripted_server(dealt, clients) as scripted:
        yield scripted


@pytest.fixture
async def empty(house, clients):
    """The same server before any round."""
    async with scripted_server(house, clients) as scripted:
        yield scripted


def private(house):
    return next(frame for frame in house.frames if "private" in frame)


async def test_an_honest_round_passes_all_checks(scripted, game):
    house = scripted.house
    house.do(Show(game.ada, "hand:1"))
    house.do(Move(game.ada, "return", "hand:1", "deck", where="bottom", count=1))
    house.shuffle()
    house.shuffle(steps=3)
    house.do(Draw(game.bob, 2))
    house.do(Move(game.bob, "give", "hand:2", "hand:1", count=1))
    house.do(game.close)
    await scripted.enter()
    result = await scripted.clients.run(
        "return { saved: its.ada.checkpoints, checks: its.ada.checks }"
    )
    assert result["saved"][: len(house.notes)] == [
        house.notes[size] for size in sorted(house.notes)
    ]
    assert not [check for check in result["checks"] if check["state"] == "no"]


async def test_a_client_that_joined_mid_round_verifies_the_secret(scripted, game):
    house = scripted.house
    await scripted.begin_with_snapshot()
    house.do(Draw(game.ada, 1))
    house.shuffle()
    house.do(Draw(game.ada, 1))
    house.do(game.close)
    await scripted.send_all()
    replayed = await scripted.clients.run("return its.ada.checks.at(-1)")
    assert replayed["state"] == "yes"
    assert replayed["sentence"] == "Replayed from where this client joined."


@pytest.mark.parametrize("member", ["card", "salt"])
async def test_a_card_other_than_the_sealed_one(scripted, member):
    frames = deepcopy(scripted.house.frames)
    altered = next(frame for frame in frames if "private" in frame)
    value = {"card": other_card(altered["private"]["card"]), "salt": "00" * 32}[member]
    altered["private"][member] = value
    scripted.frames = frames
    with pytest.raises(JsError, match="HouseCheated"):
        await scripted.enter()
    fault = await stored_evidence(scripted, "not the one that was sealed")
    assert fault["frames"] == [altered]
    assert any('"DeckSealed"' in leaf for leaf in fault["leaves"])
    assert "table.leave" in scripted.methods


async def stored_evidence(scripted, sentence):
    """The evidence in Ada's store, with this sentence."""
    (evidence,) = await scripted.clients.run(
        """
        const [, table] = /([0-9a-f]{32})/.exec(args.table);
        return JSON.parse(its.store.get(`dealer/${table}/evidence`));
        """,
        table=scripted.house.frames[0]["table"],
    )
    assert sentence in evidence["sentence"]
    return evidence


async def test_the_opening_of_another_slot(scripted, game):
    await scripted.enter()
    (one, two) = scripted.house.do(Draw(game.ada, 2))
    one["private"] = two["private"]
    await scripted.send(one)
    fault = await scripted.caught("another card than the one that was moved")
    assert fault.check == "cards"


async def test_a_shown_card_that_does_not_open_its_seal(scripted, game):
    await scripted.enter()
    (shown,) = scripted.house.do(Show(game.bob, "hand:2"))
    shown["public"]["card"] = other_card(shown["public"]["card"])
    await scripted.send(shown)
    assert (await scripted.caught("not open the slot's commitment")).check == "cards"


async def test_a_signed_root_of_a_different_log(scripted):
    fork = scripted.house.fork()
    fork.do(TakeSeat("Eve"))
    await scripted.enter()
    scripted.house.do(TakeSeat("Cleo"))
    await scripted.send_all()
    await scripted.note(fork.sign())
    fault = await scripted.caught("signed a different log")
    assert fault.check == "roots"
    assert fork.sign() in fault.evidence["notes"]


async def test_a_head_ahead_of_its_events_is_compared_later(scripted):
    fork = scripted.house.fork()
    fork.do(TakeSeat("Eve"))
    await scripted.enter()
    await scripted.note(fork.sign())
    await scripted.send(*scripted.house.do(TakeSeat("Cleo")))
    await scripted.caught("signed a different log")


async def test_two_different_heads_of_one_size(scripted):
    fork = scripted.house.fork()
    await scripted.enter()
    fork.do(TakeSeat("Eve"))
    scripted.house.do(TakeSeat("Cleo"))
    await scripted.note(fork.sign())
    await scripted.note(scripted.house.sign())
    fault = await scripted.caught("two different logs of one length")
    assert {fork.sign(), scripted.house.sign()} <= set(fault.evidence["notes"])


async def test_a_head_under_a_foreign_key(scripted, game):
    await scripted.enter()
    foreign = game.house(seed=8)
    foreign.tree = scripted.house.tree
    await scripted.note(foreign.sign())
    assert (await scripted.caught("not signed with this table's key")).check == "signatures"


@pytest.mark.parametrize("joined", ["before", "later"])
async def test_a_wrong_cosignature_of_a_player(scripted, joined):
    cleo, stranger = (Cosigner(bytes([seed]) * 32) for seed in (1, 2))
    scripted.house.do(TakeSeat("Cleo", key=cleo.public_key))
    await (scripted.enter() if joined == "before" else scripted.begin_with_snapshot())
    note = scripted.house.sign()
    await scripted.note(cosignature(note + cleo.cosign(note, time=7), stranger, bytes(72)))
    assert await scripted.clients.run("return its.ada.checks.filter((c) => c.state === 'no')") == []
    await scripted.note(cosignature(note, cleo, bytes(72)))
    assert (await scripted.caught("A signature is invalid")).check == "signatures"


async def test_a_head_with_an_invalid_signature(scripted):
    await scripted.enter()
    text, signature = scripted.house.sign().rsplit(" ", 1)
    await scripted.note(
        f"{text} {signature[:20]}{'A' if signature[20] != 'A' else 'B'}{signature[21:]}"
    )
    assert (await scripted.caught("not signed with this table's key")).check == "signatures"


async def test_a_table_whose_key_changed(scripted):
    with pytest.raises(JsError, match="not signed with this table's key"):
        await scripted.enter(seat={"token": "seat.1", "seat": 1, "since": 2, "key": "00" * 32})


async def test_missing_events_are_requested_a_limited_number_of_times(scripted, game):
    await scripted.enter()
    scripted.house.do(Draw(game.bob, 2))
    scripted.frames = [*scripted.house.frames[:-2], scripted.house.frames[-1]]
    await scripted.send(scripted.house.frames[-1])
    await scripted.caught("omits an event repeatedly")
    assert scripted.methods.count("table.resume") == 5


async def test_two_different_events_of_one_version(scripted):
    await scripted.enter()
    await scripted.send(scripted.house.frames[3])
    await scripted.send({**scripted.house.frames[3], "at": scripted.house.frames[3]["at"] + 1})
    assert (await scripted.caught("two different events")).check == "roots"


@pytest.mark.parametrize(
    "alter",
    [
        {"extra": 1},
        {"v": True},
        {"at": 1.5},
        {"at": 0},
        {"table": "ff" * 16},
        {"public": {"seat": 3, "more": 1}},
        {"public": {"seat": 3, "name": "Cleo"}},
        {"public": {"seat": "3"}},
        {"public": {"seat": 1}},
        {"commit": "ab" * 32},
        {"opened": None},
        {"private": {"card": "As", "salt": "00" * 32, "slot": 0}},
    ],
    ids=str,
)
async def test_malformed_and_illegal_events(empty, alter):
    await empty.enter()
    (frame,) = empty.house.do(TakeSeat("Cleo"))
    frame |= alter
    if "table" in alter:
        await empty.notify("event", frame | {"public": 1} | {"table": frame["table"]})
        # Events of another table are ignored.
        await empty.clients.run("await new Promise((resolve) => setTimeout(resolve, 20))")
        assert await empty.clients.run("return its.ada.error === null && its.ada.version === 3")
        return
    await empty.send(frame)
    await empty.caught("The server")


async def test_another_name_than_the_one_committed_to(empty):
    """The client leaves before it shows the name; the evidence has both."""
    await empty.enter()
    (frame,) = empty.house.do(TakeSeat("Cleo"))
    frame["opened"]["part"]["name"] = "Clea"
    await empty.send(frame)
    error = await empty.caught("another name or text")
    assert error.check == "roots"
    assert error.evidence["frames"] == [frame]
    assert "Clea" not in await empty.clients.run("return [...its.ada.seats.values()]")


async def test_a_draw_of_a_card_that_is_not_in_the_stack(scripted, game):
    await scripted.enter()
    (frame,) = scripted.house.do(Draw(game.bob, 1))
    frame["public"]["slot"] = private(scripted.house)["public"]["slot"]
    await scripted.send(frame)
    assert (await scripted.caught("is not in that stack")).check == "moves"


async def test_a_draw_during_a_shuffle(scripted, game):
    await scripted.enter()
    scripted.house.do(game.start)
    slot = scripted.house.table.round.cards("deck")[-1]
    scripted.house.record(CardDrawn(1, 2, "deck", slot, scripted.house.table.round.faces[slot]))
    await scripted.send(*scripted.house.frames[-3:])
    await scripted.caught("A shuffle is running")


async def test_a_secret_that_was_not_committed_to(scripted):
    await scripted.enter()
    await scripted.send(scripted.house.record(RoundClosed(1, b"\x02" * 64)))
    assert (await scripted.caught("not the one that the house committed to")).check == "round"


async def test_a_swap_that_the_tape_does_not_give(empty, game):
    empty.house.swap_nothing()
    await empty.enter()
    await empty.send(*empty.house.do(game.close))
    assert (await empty.caught("commitment does not match")).check == "round"


async def test_a_seal_in_another_order_than_the_swaps(empty, game):
    empty.house.seal_another_order()
    await empty.enter()
    await empty.send(*empty.house.do(game.close))
    await empty.caught("commits to another card")


async def test_a_hidden_commitment_to_another_drawn_card(scripted, game):
    await scripted.enter()
    scripted.house.draw_another_card()
    scripted.house.do(game.close)
    await scripted.send(*scripted.house.frames[-2:])
    await scripted.caught("commitment does not match")


async def test_a_nonce_that_was_not_committed_to(empty):
    empty.house.start_with_digests()
    await empty.enter()
    await empty.send(empty.house.record(EntropyRevealed(1, 0, 2, b"\x01" * 32)))
    assert (await empty.caught("does not open the digest")).check == "commitment"


async def test_a_reset_needs_a_proof(scripted, game):
    await scripted.enter()
    before = scripted.house.table.version
    scripted.house.do(TakeSeat("Cleo"))
    scripted.house.do(Draw(game.ada, 1))
    scripted.frames = []
    scripted.answer = {"reset": True}
    await scripted.lose_connection()
    await scripted.snapshot(scripted.house.describe(), proof=scripted.house.proof(before))
    await scripted.caught_up()
    scripted.house.do(game.close)
    await scripted.send(scripted.house.frames[-1])
    await scripted.caught_up()
    assert await scripted.clients.run("return its.ada.checks.at(-1).state") == "yes"


@pytest.mark.parametrize("proof", ["none", "of another history"])
async def test_a_reset_without_a_proof(scripted, game, proof):
    fork = scripted.house.fork()
    await scripted.enter()
    before = scripted.house.table.version
    scripted.house.do(TakeSeat("Cleo"))
    await scripted.send_all()
    scripted.house.do(Draw(game.ada, 1))
    fork.do(TakeSeat("Eve"))
    fork.do(TakeSeat("Finn"))
    fork.do(TakeSeat("Gwen"))
    scripted.frames = []
    scripted.house.notes.clear()
    if proof == "none":
        await scripted.lose_connection()
        await scripted.snapshot(scripted.house.describe())
        await scripted.caught("went back behind")
    else:
        scripted.house = fork
        await scripted.lose_connection()
        await scripted.snapshot(fork.describe(), proof=fork.proof(before + 1))
        await scripted.caught("does not continue the one that this client saw")


async def test_a_server_that_lost_its_last_events(scripted):
    older = scripted.house.fork()
    scripted.house.do(TakeSeat("Cleo"))
    await scripted.enter()
    scripted.house, scripted.frames = older, []
    await scripted.lose_connection()
    await scripted.caught("went back behind")


async def test_a_server_that_resets_an_open_connection_to_an_older_state(scripted):
    older = scripted.house.fork()
    await scripted.enter()
    scripted.house.do(TakeSeat("Cleo"))
    await scripted.send_all()
    await scripted.caught_up()
    await scripted.snapshot(older.describe())
    await scripted.caught("went back behind")


def head_of(house):
    edge = [node.hex() for node in house.tree.edge]
    return {"size": house.tree.size, "note": house.sign(), "edge": edge}


@pytest.mark.parametrize("honest", [True, False])
async def test_after_a_snapshot_the_events_since_the_saved_head_are_requested(
    scripted, game, honest
):
    """After a snapshot in place of a long log, the events since the saved head are requested."""
    fork = scripted.house.fork()
    saved = head_of(scripted.house)
    scripted.house.do(TakeSeat("Cleo"))
    if not honest:
        saved = head_of(scripted.house)
        scripted.house = fork
        fork.do(TakeSeat("Eve"))
    scripted.house.do(Draw(game.ada, 1))
    frames, scripted.frames, scripted.answer = scripted.house.frames, [], {"reset": True}
    entering = asyncio.ensure_future(scripted.enter(heads=[saved]))
    await scripted.has_requested("table.resume")
    scripted.frames, scripted.answer = frames, {}
    await scripted.snapshot(scripted.house.describe(), proof=[])
    if honest:
        await entering
        await scripted.caught_up()
        after = [
            one["params"]["after"] for one in scripted.requests if one["method"] == "table.resume"
        ]
        assert after == [0, saved["size"]]
    else:
        await asyncio.gather(entering, return_exceptions=True)
        await scripted.caught("does not continue the one that was saved")


async def test_the_signed_head_of_a_snapshot_that_proves_nothing_is_kept(scripted):
    """It answers an earlier resume from the saved head; the next answer has another head."""
    saved = head_of(scripted.house)
    scripted.house.do(TakeSeat("Cleo"))
    frames, scripted.frames, scripted.answer = scripted.house.frames, [], {"reset": True}
    entering = asyncio.ensure_future(scripted.enter(heads=[saved]))
    await scripted.has_requested("table.resume")
    scripted.frames, scripted.answer = frames, {}
    await scripted.snapshot(scripted.house.describe(), proof=[])
    await entering
    await scripted.caught_up()
    fork = scripted.house.fork()
    fork.do(TakeSeat("Eve"))
    scripted.house.do(TakeSeat("Dora"))
    await scripted.snapshot(fork.describe(), proof=[])
    await scripted.caught("signed two different logs of one length")


@pytest.mark.parametrize("changed", ["edge", "seats", "key", "card", "deck"])
async def test_a_snapshot_that_does_not_match_the_signed_head(scripted, changed):
    described = scripted.house.describe()
    sentence = "impossible snapshot"
    if changed == "edge":
        described["edge"][0] = "00" * 32
        sentence = "signed a different log"
    elif changed == "card":
        first, second = described["state"]["round"]["cards"]
        first[1], second[1] = second[1], first[1]
        sentence = "not the one that was sealed"
    elif changed == "deck":
        described["state"]["round"]["stacks"]["deck"].pop()
    else:
        del described["state"][changed]
    with pytest.raises(JsError, match="HouseCheated"):
        await scripted.begin_with_snapshot(described)
    await stored_evidence(scripted, sentence)


async def test_a_wrong_salt_in_a_snapshot_is_found_with_the_secret(scripted, game):
    """A server that also changes the seal is detected when its secret is known."""
    await scripted.begin_with_snapshot(scripted.house.describe_with_wrong_salt())
    await scripted.send(*scripted.house.do(game.close))
    assert (await scripted.caught("does not give what was played")).check == "round"


async def test_a_table_left_because_of_cheating_cannot_be_joined_again(scripted):
    await scripted.enter()
    fork = scripted.house.fork()
    scripted.house.do(TakeSeat("Cleo"))
    fork.do(TakeSeat("Eve"))
    await scripted.send_all()
    await scripted.note(fork.sign())
    await scripted.caught("signed a different log")
    for attempt in ("its.ada.draw(1)", "its.house.join(its.ada.id)", "its.house.watch(its.ada.id)"):
        with pytest.raises(JsError) as refused:
            await scripted.clients.run(f"await {attempt}")
        assert refused.value.name == "HouseCheated"
