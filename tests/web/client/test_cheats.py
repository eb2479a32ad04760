"""Every lie a house can think of, and a JavaScript client that notices."""

from __future__ import annotations

import asyncio
from copy import deepcopy

import pytest

from dealer.game.commands import Draw, Move, Show, TakeSeat
from dealer.game.events import CardDrawn, CardsSwapped, DeckSealed, EntropyRevealed, RoundClosed
from dealer.proof.keys import slot_commitment
from tests.web.client.players import JsError
from tests.web.client.stage import on_stage


@pytest.fixture
async def stage(dealt, players):
    async with on_stage(dealt, players) as stage:
        yield stage


@pytest.fixture
async def empty(house, players):
    """The same before any round."""
    async with on_stage(house, players) as stage:
        yield stage


def private(house):
    return next(frame for frame in house.frames if "private" in frame)


def other(card):
    return "As" if card != "As" else "Ks"


async def test_an_honest_round_is_believed_to_its_end(stage, game):
    house = stage.house
    house.do(Show(game.ada, "hand:1"))
    house.do(Move(game.ada, "return", "hand:1", "deck", where="bottom", count=1))
    house.shuffle()
    house.shuffle(steps=3)
    house.do(Draw(game.bob, 2))
    house.do(Move(game.bob, "give", "hand:2", "hand:1", count=1))
    house.do(game.close)
    await stage.enter()
    told = await stage.players.run("return { saved: its.ada.checkpoints, checks: its.ada.checks }")
    assert told["saved"][: len(house.notes)] == [house.notes[size] for size in sorted(house.notes)]
    assert not [check for check in told["checks"] if check["state"] == "no"]


async def test_a_joiner_in_the_middle_follows_to_the_reckoning(stage, game):
    house = stage.house
    await stage.begin_with_snapshot()
    house.do(Draw(game.ada, 1))
    house.shuffle()
    house.do(Draw(game.ada, 1))
    house.do(game.close)
    await stage.tell_all()
    reckoned = await stage.players.run("return its.ada.checks.at(-1)")
    assert reckoned["state"] == "yes"
    assert reckoned["sentence"] == "Made again from where this client came in."


@pytest.mark.parametrize("member", ["card", "salt"])
async def test_another_card_than_was_sealed(stage, member):
    frames = deepcopy(stage.house.frames)
    lie = next(frame for frame in frames if "private" in frame)
    value = {"card": other(lie["private"]["card"]), "salt": "00" * 32}[member]
    lie["private"][member] = value
    stage.frames = frames
    with pytest.raises(JsError, match="HouseCheated"):
        await stage.enter()
    fault = await kept(stage, "not the one that was sealed")
    assert fault["frames"] == [lie]
    assert any('"DeckSealed"' in leaf for leaf in fault["leaves"])
    assert "table.leave" in stage.methods


async def kept(stage, sentence):
    """The evidence in Ada's store, with this sentence."""
    (evidence,) = await stage.players.run(
        """
        const [, table] = /([0-9a-f]{32})/.exec(args.table);
        return JSON.parse(its.store.get(`dealer/${table}/evidence`));
        """,
        table=stage.house.frames[0]["table"],
    )
    assert sentence in evidence["sentence"]
    return evidence


async def test_the_opening_of_another_slot(stage, game):
    await stage.enter()
    (one, two) = stage.house.do(Draw(game.ada, 2))
    one["private"] = two["private"]
    await stage.tell(one)
    fault = await stage.caught("another card than the one that was moved")
    assert fault.check == "cards"


async def test_a_shown_card_that_is_another(stage, game):
    await stage.enter()
    (shown,) = stage.house.do(Show(game.bob, "hand:2"))
    shown["public"]["card"] = other(shown["public"]["card"])
    await stage.tell(shown)
    assert (await stage.caught("not open the slot's commitment")).check == "cards"


async def test_a_root_that_is_not_ours(stage):
    fork = stage.house.fork()
    fork.do(TakeSeat("Eve"))
    await stage.enter()
    stage.house.do(TakeSeat("Cleo"))
    await stage.tell_all()
    await stage.note(fork.sign())
    fault = await stage.caught("signed another log")
    assert fault.check == "roots"
    assert fork.sign() in fault.evidence["notes"]


async def test_a_head_that_came_before_its_events_is_compared_later(stage):
    fork = stage.house.fork()
    fork.do(TakeSeat("Eve"))
    await stage.enter()
    await stage.note(fork.sign())
    await stage.tell(*stage.house.do(TakeSeat("Cleo")))
    await stage.caught("signed another log")


async def test_two_heads_of_one_length(stage):
    fork = stage.house.fork()
    await stage.enter()
    fork.do(TakeSeat("Eve"))
    stage.house.do(TakeSeat("Cleo"))
    await stage.note(fork.sign())
    await stage.note(stage.house.sign())
    fault = await stage.caught("two different logs of one length")
    assert {fork.sign(), stage.house.sign()} <= set(fault.evidence["notes"])


async def test_a_head_under_a_foreign_key(stage, game):
    await stage.enter()
    foreign = game.house(seed=8)
    foreign.tree = stage.house.tree
    await stage.note(foreign.sign())
    assert (await stage.caught("not signed with this table's key")).check == "signatures"


async def test_a_head_whose_signature_is_bad(stage):
    await stage.enter()
    text, signature = stage.house.sign().rsplit(" ", 1)
    await stage.note(
        f"{text} {signature[:20]}{'A' if signature[20] != 'A' else 'B'}{signature[21:]}"
    )
    assert (await stage.caught("not signed with this table's key")).check == "signatures"


async def test_a_table_whose_key_changed(stage):
    with pytest.raises(JsError, match="not signed with this table's key"):
        await stage.enter(seat={"token": "seat.1", "seat": 1, "since": 2, "key": "00" * 32})


async def test_a_missing_event_is_asked_for_but_not_for_ever(stage, game):
    await stage.enter()
    stage.house.do(Draw(game.bob, 2))
    stage.frames = [*stage.house.frames[:-2], stage.house.frames[-1]]
    await stage.tell(stage.house.frames[-1])
    await stage.caught("leaves out an event again and again")
    assert stage.methods.count("table.resume") == 5


async def test_an_event_that_is_told_in_two_ways(stage):
    await stage.enter()
    await stage.tell(stage.house.frames[3])
    await stage.tell({**stage.house.frames[3], "at": stage.house.frames[3]["at"] + 1})
    assert (await stage.caught("two different ways")).check == "roots"


@pytest.mark.parametrize(
    "alter",
    [
        {"extra": 1},
        {"v": True},
        {"at": 1.5},
        {"at": 0},
        {"table": "ff" * 16},
        {"public": {"name": "Cleo", "seat": 3, "more": 1}},
        {"public": {"name": None, "seat": 3}},
        {"public": {"name": "Cleo", "seat": "3"}},
        {"public": {"name": "Cleo", "seat": 1}},
        {"commit": "ab" * 32},
        {"private": {"card": "As", "salt": "00" * 32, "slot": 0}},
    ],
    ids=str,
)
async def test_an_event_that_is_no_leaf_or_cannot_happen(empty, alter):
    await empty.enter()
    (frame,) = empty.house.do(TakeSeat("Cleo"))
    frame |= alter
    if "table" in alter:
        await empty.say("event", frame | {"public": 1} | {"table": frame["table"]})
        # Another table's news is not for this one: nothing is believed, and nothing is said.
        await empty.players.run("await new Promise((resolve) => setTimeout(resolve, 20))")
        assert await empty.players.run("return its.ada.error === null && its.ada.version === 3")
        return
    await empty.tell(frame)
    await empty.caught("The house")


async def test_a_draw_from_where_the_card_does_not_lie(stage, game):
    await stage.enter()
    (frame,) = stage.house.do(Draw(game.bob, 1))
    frame["public"]["slot"] = private(stage.house)["public"]["slot"]
    await stage.tell(frame)
    assert (await stage.caught("does not lie there")).check == "moves"


async def test_a_draw_while_a_shuffle_runs(stage, game):
    await stage.enter()
    stage.house.do(game.start)
    slot = stage.house.table.round.cards("deck")[-1]
    stage.house.tell(CardDrawn(1, 2, "deck", slot, stage.house.table.round.faces[slot]))
    await stage.tell(*stage.house.frames[-3:])
    await stage.caught("A shuffle runs")


async def test_a_secret_that_was_not_promised(stage):
    await stage.enter()
    await stage.tell(stage.house.tell(RoundClosed(1, b"\x02" * 64)))
    assert (await stage.caught("not the one it committed to")).check == "round"


async def test_a_swap_that_the_tape_does_not_give(empty, game):
    house = empty.house
    house.open_round()
    house.do(game.start)
    order = house.table.round
    for step in range(51):  # the house leaves every card where it was
        house.tell(CardsSwapped(1, 0, step, 51 - step, 51 - step))
    codes = [order.face(card) for card in order.cards("deck")]
    house.tell(DeckSealed(1, 0, 0, tuple(house.secret.slot_commitments(0, codes))))
    await empty.enter()
    await empty.tell(*house.do(game.close))
    assert (await empty.caught("commits to something else")).check == "round"


async def test_a_seal_in_another_order_than_the_swaps(empty, game):
    house = empty.house
    house.open_round()
    house.do(game.start)
    fork = house.fork()
    fork.finish()
    faces = fork.table.round.faces
    swapped = [faces[1], faces[0], *faces[2:]]
    cheat = tuple(house.secret.slot_commitments(0, swapped))
    for frame in fork.frames[house.table.version : -1]:
        house.tell(swap(fork, frame))
    house.tell(DeckSealed(1, 0, 0, cheat))
    house.table.round.faces[:] = swapped
    await empty.enter()
    await empty.tell(*house.do(game.close))
    await empty.caught("holds another card")


def swap(house, frame):
    """A swap event with the j that its commitment hides."""
    public = frame["public"]
    for j in range(52):
        hidden = f'{{"j":{j}}}'
        commit = house.secret.keys.event_commitment(frame["version"], hidden).hex()
        if commit == frame["commit"]:
            return CardsSwapped(1, 0, public["step"], public["i"], j)
    raise AssertionError


async def test_a_drawn_card_that_was_another_to_its_owner(stage, game):
    """To Bob the house gives the true card, but commits to another in the log."""
    await stage.enter()
    slot = stage.house.table.round.cards("deck")[-1]
    face = stage.house.table.round.faces[slot]
    stage.house.tell(CardDrawn(1, 2, "deck", slot, face), hidden=f'{{"card":"{other(face)}"}}')
    stage.house.do(game.close)
    await stage.tell(*stage.house.frames[-2:])
    await stage.caught("commits to something else")


async def test_bytes_that_were_not_promised(empty, game):
    house = empty.house
    house.open_round(entropy="players")
    for actor in (game.ada, game.bob):
        digest = house.secret.player_digest(k=0, seat=actor.seat, nonce=bytes(32))
        house.do(game.commit(actor, 1, 0, digest))
    house.do(game.start)
    await empty.enter()
    await empty.tell(house.tell(EntropyRevealed(1, 0, 2, b"\x01" * 32)))
    assert (await empty.caught("do not open the digest")).check == "commitment"


async def test_a_reset_needs_a_proof(stage, game):
    await stage.enter()
    before = stage.house.table.version
    stage.house.do(TakeSeat("Cleo"))
    stage.house.do(Draw(game.ada, 1))
    stage.frames = []
    stage.answer = {"reset": True}
    await lose_the_line(stage)
    await stage.snapshot(stage.house.describe(), proof=stage.house.proof(before))
    await stage.believed()
    stage.house.do(game.close)
    await stage.tell(stage.house.frames[-1])
    await stage.believed()
    assert await stage.players.run("return its.ada.checks.at(-1).state") == "yes"


@pytest.mark.parametrize("proof", ["none", "of another history"])
async def test_a_reset_without_a_proof(stage, game, proof):
    fork = stage.house.fork()
    await stage.enter()
    before = stage.house.table.version
    stage.house.do(TakeSeat("Cleo"))
    await stage.tell_all()
    stage.house.do(Draw(game.ada, 1))
    fork.do(TakeSeat("Eve"))
    fork.do(TakeSeat("Finn"))
    fork.do(TakeSeat("Gwen"))
    stage.frames = []
    stage.house.notes.clear()
    if proof == "none":
        await lose_the_line(stage)
        await stage.snapshot(stage.house.describe())
        await stage.caught("went back behind")
    else:
        stage.house = fork
        await lose_the_line(stage)
        await stage.snapshot(fork.describe(), proof=fork.proof(before + 1))
        await stage.caught("does not continue the one that this client saw")


async def lose_the_line(stage):
    """The socket breaks, and Ada resumes on a new one."""
    times = stage.methods.count("table.resume")
    await stage.hang_up()
    await stage.has_asked("table.resume", times=times + 1)


async def test_a_house_that_lost_its_last_events(stage):
    older = stage.house.fork()
    stage.house.do(TakeSeat("Cleo"))
    await stage.enter()
    stage.house, stage.frames = older, []
    await lose_the_line(stage)
    await stage.caught("went back behind")


async def test_a_house_that_says_on_an_open_line_that_it_lost_its_last_events(stage):
    older = stage.house.fork()
    await stage.enter()
    stage.house.do(TakeSeat("Cleo"))
    await stage.tell_all()
    await stage.believed()
    await stage.snapshot(older.describe())
    await stage.caught("went back behind")


def head_of(house):
    edge = [node.hex() for node in house.tree.edge]
    return {"size": house.tree.size, "note": house.sign(), "edge": edge}


@pytest.mark.parametrize("honest", [True, False])
async def test_who_comes_back_wants_to_see_what_lies_between(stage, game, honest):
    """A snapshot comes in place of the long log; what leads there from the saved head is asked."""
    fork = stage.house.fork()
    saved = head_of(stage.house)
    stage.house.do(TakeSeat("Cleo"))
    if not honest:
        saved = head_of(stage.house)
        stage.house = fork
        fork.do(TakeSeat("Eve"))
    stage.house.do(Draw(game.ada, 1))
    frames, stage.frames, stage.answer = stage.house.frames, [], {"reset": True}
    entering = asyncio.ensure_future(stage.enter(heads=[saved]))
    await stage.has_asked("table.resume")
    stage.frames, stage.answer = frames, {}
    await stage.snapshot(stage.house.describe(), proof=[])
    if honest:
        await entering
        await stage.believed()
        after = [one["params"]["after"] for one in stage.asked if one["method"] == "table.resume"]
        assert after == [0, saved["size"]]
    else:
        await asyncio.gather(entering, return_exceptions=True)
        await stage.caught("does not continue the one that was saved")


@pytest.mark.parametrize("lie", ["edge", "seats", "key", "card", "deck"])
async def test_a_snapshot_that_is_not_what_was_signed(stage, lie):
    described = stage.house.describe()
    sentence = "in a way that cannot be"
    if lie == "edge":
        described["edge"][0] = "00" * 32
        sentence = "signed another log"
    elif lie == "card":
        first, second = described["state"]["round"]["cards"]
        first[1], second[1] = second[1], first[1]
        sentence = "not the one that was sealed"
    elif lie == "deck":
        described["state"]["round"]["stacks"]["deck"].pop()
    else:
        del described["state"][lie]
    with pytest.raises(JsError, match="HouseCheated"):
        await stage.begin_with_snapshot(described)
    await kept(stage, sentence)


async def test_a_wrong_salt_in_a_snapshot_is_found_at_the_reckoning(stage, game):
    """A house that lies about the seal, too, is caught when its secret is known."""
    described = stage.house.describe()
    view = described["state"]["round"]
    slot, card, _ = view["cards"][0]
    view["cards"][0][2] = "00" * 32
    table = bytes.fromhex(game.table)
    sealed = slot_commitment(table=table, round=1, slot=slot, salt=bytes(32), card=card)
    view["commitments"] = [
        [place, sealed.hex() if place == slot else text] for place, text in view["commitments"]
    ]
    await stage.begin_with_snapshot(described)
    await stage.tell(*stage.house.do(game.close))
    assert (await stage.caught("does not give what was played")).check == "round"


async def test_a_table_that_was_left_is_refused_afterwards(stage):
    await stage.enter()
    fork = stage.house.fork()
    stage.house.do(TakeSeat("Cleo"))
    fork.do(TakeSeat("Eve"))
    await stage.tell_all()
    await stage.note(fork.sign())
    await stage.caught("signed another log")
    for attempt in ("its.ada.draw(1)", "its.house.join(its.ada.id)", "its.house.watch(its.ada.id)"):
        with pytest.raises(JsError) as refused:
            await stage.players.run(f"await {attempt}")
        assert refused.value.name == "HouseCheated"
