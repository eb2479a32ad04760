"""A house that cheats, in every way one can think of, and a client that notices."""

from __future__ import annotations

from copy import deepcopy

import pytest

from dealer.client.store import SavedHead
from dealer.client.story import Gap
from dealer.client.witness import Witness
from dealer.errors import HouseCheated
from dealer.game.commands import Draw, Move, Show, TakeSeat
from dealer.game.events import (
    CardDrawn,
    CardsSwapped,
    DeckSealed,
    EntropyRevealed,
    RoundClosed,
    SeatLeft,
)
from dealer.proof.keys import slot_commitment
from dealer.proof.tree import Tree


def feed(house, witness, *, until):
    """All frames before one, with their heads."""
    for frame in house.frames[: until["version"] - 1]:
        witness.event(frame)
        if frame["version"] in house.notes:
            witness.checkpoint(house.notes[frame["version"]])


def test_an_honest_round_is_believed_to_its_end(dealt, witness, game):
    dealt.do(Show(game.ada, "hand:1"))
    dealt.do(Move(game.ada, "return", "hand:1", "deck", where="bottom", count=1))
    dealt.shuffle()
    dealt.shuffle(steps=3)
    dealt.do(Draw(game.bob, 2))
    dealt.do(Move(game.bob, "give", "hand:2", "hand:1", count=1))
    dealt.do(game.close)
    dealt.show(witness)
    assert witness.version == dealt.table.version
    assert witness.story.heads.keys() == dealt.notes.keys()
    assert [head.size for head in witness.story.fresh] == sorted(dealt.notes)


def test_one_knows_ones_own_cards_and_no_others(dealt, witness):
    dealt.show(witness)
    theirs = dealt.table.round
    ours = witness.state.round
    assert [ours.face(c) for c in ours.cards("hand:1")] == [
        theirs.face(c) for c in theirs.cards("hand:1")
    ]
    assert [ours.face(c) for c in ours.cards("hand:2")] == [None, None]


def test_a_joiner_in_the_middle_follows_to_the_reckoning(dealt, game):
    witness = Witness(game.table)
    witness.seat = 1
    witness.begin(**dealt.describe())
    dealt.do(Draw(game.ada, 1))
    dealt.shuffle()
    dealt.do(Draw(game.ada, 1))
    dealt.do(game.close)
    dealt.show(witness)
    assert witness.version == dealt.table.version


def test_another_card_than_was_sealed(dealt, witness):
    mine = next(f for f in dealt.frames if "private" in f)
    frame = deepcopy(mine)
    frame["private"]["card"] = "As" if frame["private"]["card"] != "As" else "Ks"
    feed(dealt, witness, until=mine)
    with pytest.raises(HouseCheated, match="not the one that was sealed") as caught:
        witness.event(frame)
    assert caught.value.evidence.frames == (frame,)
    assert caught.value.evidence.notes == (dealt.notes[max(dealt.notes)],)
    assert any('"DeckSealed"' in leaf for leaf in caught.value.evidence.leaves)


def test_another_salt(dealt, witness):
    mine = next(f for f in dealt.frames if "private" in f)
    frame = deepcopy(mine)
    frame["private"]["salt"] = "00" * 32
    feed(dealt, witness, until=mine)
    with pytest.raises(HouseCheated, match="not the one that was sealed"):
        witness.event(frame)


def test_the_opening_of_another_slot(dealt, witness):
    mine = [f for f in dealt.frames if "private" in f]
    frame = deepcopy(mine[0])
    frame["private"] = mine[1]["private"]
    feed(dealt, witness, until=mine[0])
    with pytest.raises(HouseCheated, match="another card than the one that was moved"):
        witness.event(frame)


def test_a_shown_card_that_is_another(dealt, witness, game):
    (shown,) = dealt.do(Show(game.bob, "hand:2"))
    frame = deepcopy(shown)
    frame["public"]["card"] = "As" if shown["public"]["card"] != "As" else "Ks"
    feed(dealt, witness, until=shown)
    with pytest.raises(HouseCheated, match="not the one that was sealed"):
        witness.event(frame)


def test_a_root_that_is_not_ours(dealt, witness):
    other = dealt.fork()
    other.do(TakeSeat("Eve"))
    dealt.do(TakeSeat("Cleo"))
    dealt.show(witness)
    with pytest.raises(HouseCheated, match="signed another log") as caught:
        witness.checkpoint(other.sign())
    assert caught.value.evidence.notes == (dealt.notes[max(dealt.notes)], other.sign())


def test_a_head_that_came_before_its_events_is_compared_later(dealt, witness):
    other = dealt.fork()
    other.do(TakeSeat("Eve"))
    dealt.show(witness)
    witness.checkpoint(other.sign())
    (frame,) = dealt.do(TakeSeat("Cleo"))
    with pytest.raises(HouseCheated, match="signed another log"):
        witness.event(frame)


def test_two_heads_of_one_length(dealt, witness):
    other = dealt.fork()
    dealt.show(witness)
    other.do(TakeSeat("Eve"))
    dealt.do(TakeSeat("Cleo"))
    witness.checkpoint(other.sign())
    with pytest.raises(HouseCheated, match="two different logs of one length") as caught:
        witness.checkpoint(dealt.sign())
    assert {other.sign(), dealt.sign()} < set(caught.value.evidence.notes)


def test_a_head_under_a_foreign_key(dealt, witness, game):
    foreign = game.house(seed=8)
    dealt.show(witness)
    foreign.tree = dealt.tree
    with pytest.raises(HouseCheated, match="not signed with this table's key"):
        witness.checkpoint(foreign.sign())


@pytest.mark.parametrize("size", ["now", "later"])
def test_a_head_under_another_origin(dealt, witness, game, size):
    dealt.show(witness)
    if size == "later":
        dealt.do(TakeSeat("Cleo"))
    root, length = dealt.tree.root(), dealt.tree.size
    note = dealt.signer.sign(origin=f"elsewhere/t/{game.table}", size=length, root=root)
    with pytest.raises(HouseCheated, match=f"calls this table elsewhere/t/{game.table}") as caught:
        witness.checkpoint(note)
    assert note in caught.value.evidence.notes


def test_a_table_that_is_opened_under_another_origin(dealt, game):
    witness = Witness(game.table, key=dealt.signer.public_key)
    root, length = dealt.tree.root(), dealt.tree.size
    witness.checkpoint(
        dealt.signer.sign(origin=f"elsewhere/t/{game.table}", size=length, root=root)
    )
    with pytest.raises(HouseCheated, match="called it elsewhere"):
        witness.event(dealt.frames[0])


def test_who_comes_back_to_another_origin(dealt, game):
    root, edge, length = dealt.tree.root(), dealt.tree.edge, dealt.tree.size
    note = dealt.signer.sign(origin=f"elsewhere/t/{game.table}", size=length, root=root)
    head = SavedHead(length, note, tuple(edge))
    witness = Witness(game.table, key=dealt.signer.public_key, saved=[head])
    dealt.do(TakeSeat("Cleo"))
    with pytest.raises(HouseCheated, match="called it elsewhere"):
        witness.begin(**dealt.describe())


def test_a_table_whose_key_changed(dealt, game):
    witness = Witness(game.table, key=bytes(32))
    with pytest.raises(HouseCheated, match="key is not the one"):
        witness.event(dealt.frames[0])
    with pytest.raises(HouseCheated, match="key is not the one"):
        Witness(game.table, key=bytes(32)).begin(**dealt.describe())


def test_a_version_that_is_missing_is_asked_for(dealt, witness):
    witness.event(dealt.frames[0])
    with pytest.raises(Gap):
        witness.event(dealt.frames[2])
    assert witness.story.resume_after() == 1


def test_an_event_that_comes_twice(dealt, witness):
    dealt.show(witness)
    assert witness.event(dealt.frames[3]) is None
    assert witness.version == dealt.table.version
    other = deepcopy(dealt.frames[3])
    other["at"] += 1
    with pytest.raises(HouseCheated, match="two different ways"):
        witness.event(other)


@pytest.mark.parametrize(
    "alter",
    [
        {"extra": 1},
        {"v": True},
        {"at": 1.5},
        {"at": 0},
        {"table": "ff" * 16},
        {"public": {"name": "Ada", "seat": 1, "more": 1}},
        {"public": {"name": None, "seat": 1}},
        {"public": {"name": "Ada", "seat": "1"}},
        {"commit": "ab" * 32},
    ],
)
def test_an_event_that_is_no_leaf(house, witness, alter):
    witness.event(house.frames[0])
    with pytest.raises(HouseCheated):
        witness.event(house.frames[1] | alter)


@pytest.mark.parametrize("member", ["at", "public", "version", "type", "table"])
def test_an_event_that_lacks_something(house, witness, member):
    frame = dict(house.frames[0])
    del frame[member]
    with pytest.raises(HouseCheated):
        witness.event(frame)


def test_a_secret_that_was_not_promised(dealt, witness):
    dealt.tell(RoundClosed(1, b"\x02" * 64))
    with pytest.raises(HouseCheated, match="another secret"):
        dealt.show(witness)


def test_a_swap_that_the_tape_does_not_give(house, witness, game):
    house.open_round()
    house.do(game.start)
    fork = house.fork()
    fork.finish()
    events = [f for f in fork.frames if f["type"] == "CardsSwapped"]
    assert len(events) == 51
    order = house.table.round
    for step in range(51):  # the house leaves every card where it was
        house.tell(CardsSwapped(1, 0, step, 51 - step, 51 - step))
    codes = [order.face(card) for card in order.cards("deck")]
    slots = tuple(house.secret.slot_commitments(0, codes))
    house.tell(DeckSealed(1, 0, 0, slots))
    house.show(witness)
    (close,) = house.do(game.close)
    with pytest.raises(HouseCheated, match="hid was not what the secret says"):
        witness.event(close)


def test_a_seal_in_another_order_than_the_swaps(house, witness, game):
    house.open_round()
    house.do(game.start)
    fork = house.fork()
    fork.finish()
    seal = fork.frames[-1]["public"]
    faces = fork.table.round.faces
    swapped = [faces[1], faces[0], *faces[2:]]
    cheat = tuple(house.secret.slot_commitments(0, swapped))
    assert cheat[2:] == tuple(map(bytes.fromhex, seal["slots"][2:]))
    for frame in fork.frames[house.table.version : -1]:
        house.tell(_swap(fork, frame))
    house.tell(DeckSealed(1, 0, 0, cheat))
    house.table.round.faces[:] = swapped
    house.show(witness)
    (close,) = house.do(game.close)
    with pytest.raises(HouseCheated, match="another order"):
        witness.event(close)


def _swap(house, frame):
    """A swap event with the j that its commitment hides."""
    public = frame["public"]
    for j in range(52):
        hidden = f'{{"j":{j}}}'
        commit = house.secret.keys.event_commitment(frame["version"], hidden).hex()
        if commit == frame["commit"]:
            return CardsSwapped(1, 0, public["step"], public["i"], j)
    raise AssertionError


def test_a_drawn_card_that_was_another_to_its_owner(dealt, witness, game):
    """To Bob the house gives the true card, but commits to another in the log."""
    slot = dealt.table.round.cards("deck")[-1]
    face = dealt.table.round.faces[slot]
    lie = "As" if face != "As" else "Ks"
    dealt.tell(CardDrawn(1, 2, "deck", slot, face), hidden=f'{{"card":"{lie}"}}')
    dealt.show(witness)
    (close,) = dealt.do(game.close)
    with pytest.raises(HouseCheated, match="hid was not"):
        witness.event(close)


def test_a_reset_needs_a_proof(dealt, witness, game):
    dealt.show(witness)
    before = witness.version
    dealt.do(TakeSeat("Cleo"))
    dealt.do(Draw(game.ada, 1))
    described = dealt.describe()
    with pytest.raises(HouseCheated, match="went back behind"):
        witness.reset(**described, proof=None, after=witness.version)
    witness.reset(**described, proof=dealt.proof(before), after=before)
    assert witness.version == dealt.table.version
    dealt.do(game.close)
    dealt.show(witness)
    assert witness.version == dealt.table.version


def test_two_resets_from_one_place(dealt, witness):
    """Host and player in one ask twice; the table may have moved on between the answers."""
    dealt.show(witness)
    before = witness.version
    dealt.do(TakeSeat("Cleo"))
    witness.reset(**dealt.describe(), proof=dealt.proof(before), after=before)
    witness.reset(**dealt.describe(), proof=dealt.proof(before), after=before)
    dealt.do(TakeSeat("Dora"))
    witness.reset(**dealt.describe(), proof=dealt.proof(before), after=before)
    assert witness.version == dealt.table.version


def test_bytes_that_were_not_promised(house, witness, game):
    house.open_round(entropy="players")
    for actor in (game.ada, game.bob):
        digest = house.secret.player_digest(k=0, seat=actor.seat, nonce=bytes(32))
        house.do(game.commit(actor, 1, 0, digest))
    house.do(game.start)
    house.tell(EntropyRevealed(1, 0, 2, b"\x01" * 32))
    with pytest.raises(HouseCheated, match="not those that were promised"):
        house.show(witness)


def test_a_reset_to_another_history(dealt, witness):
    other = dealt.fork()
    dealt.do(TakeSeat("Cleo"))
    dealt.show(witness)
    other.do(TakeSeat("Eve"))
    other.do(TakeSeat("Finn"))
    with pytest.raises(HouseCheated, match="does not continue"):
        witness.reset(**other.describe(), proof=other.proof(witness.version), after=witness.version)


def test_a_house_that_lost_its_last_events(dealt, witness):
    older = dealt.fork()
    dealt.do(TakeSeat("Cleo"))
    dealt.show(witness)
    with pytest.raises(HouseCheated, match="went back behind"):
        witness.reset(**older.describe(), proof=None, after=witness.version)


def test_a_house_that_says_on_an_open_line_that_it_lost_its_last_events(dealt, witness):
    """What is left is the beginning of what was seen, and nobody had asked to resume."""
    older = dealt.fork()
    dealt.do(TakeSeat("Cleo"))
    dealt.show(witness)
    with pytest.raises(HouseCheated, match="went back behind"):
        witness.reset(**older.describe(), proof=None, after=0)


def saved_of(house):
    return SavedHead(house.tree.size, house.sign(), tuple(house.tree.edge))


def test_who_comes_back_wants_to_see_what_lies_between(dealt, game):
    saved = saved_of(dealt)
    dealt.do(TakeSeat("Cleo"))
    dealt.do(Draw(game.ada, 1))
    witness = Witness(game.table, saved=[saved])
    witness.begin(**dealt.describe())
    assert not witness.story.linked
    assert witness.story.resume_after() == saved.size
    for frame in dealt.frames[saved.size :]:
        assert witness.event(frame) is None
    assert witness.story.linked
    assert witness.story.resume_after() == witness.version


def test_who_comes_back_to_another_history(dealt, game):
    other = dealt.fork()
    dealt.do(TakeSeat("Cleo"))
    saved = saved_of(dealt)
    other.do(TakeSeat("Eve"))
    other.do(Draw(game.ada, 1))
    witness = Witness(game.table, saved=[saved])
    witness.begin(**other.describe())
    for frame in other.frames[saved.size : -1]:
        witness.event(frame)
    with pytest.raises(HouseCheated, match="does not continue"):
        witness.event(other.frames[-1])
    from_the_start = Witness(game.table, saved=[saved], key=other.signer.public_key)
    with pytest.raises(HouseCheated, match="signed another log"):
        other.show(from_the_start)


def test_a_snapshot_that_another_root_signs(dealt, game):
    described = dealt.describe()
    described["edge"][0] = "00" * 32
    with pytest.raises(HouseCheated, match="signed another log"):
        Witness(game.table).begin(**described)


@pytest.mark.parametrize("member", ["seats", "rules", "version", "key"])
def test_a_snapshot_that_lacks_something(dealt, game, member):
    described = dealt.describe()
    del described["state"][member]
    with pytest.raises(HouseCheated, match="cannot be"):
        Witness(game.table).begin(**described)


def test_a_wrong_face_in_a_snapshot(dealt, game):
    described = dealt.describe()
    first, second = described["state"]["round"]["cards"]
    first[1], second[1] = second[1], first[1]
    with pytest.raises(HouseCheated, match="not the one that was sealed"):
        Witness(game.table).begin(**described)


def test_a_wrong_salt_in_a_snapshot_is_found_at_the_reckoning(dealt, game):
    """A house that lies about the seal, too, is caught when its secret is known."""
    described = dealt.describe()
    view = described["state"]["round"]
    slot, card, _ = view["cards"][0]
    view["cards"][0][2] = "00" * 32
    sealed = slot_commitment(
        table=bytes.fromhex(game.table), round=1, slot=slot, salt=bytes(32), card=card
    )
    view["commitments"] = [
        [place, sealed.hex() if place == slot else text] for place, text in view["commitments"]
    ]
    witness = Witness(game.table)
    witness.begin(**described)
    (close,) = dealt.do(game.close)
    with pytest.raises(HouseCheated, match="a salt that the round's secret does not give"):
        witness.event(close)


def test_a_head_that_came_late_is_kept_all_the_same(dealt, witness):
    """Bytes are shown under it: after a restart no other history may pass for this one."""
    dealt.tell(SeatLeft(2))
    note, size = dealt.sign(), dealt.table.version
    dealt.do(TakeSeat("Cleo"))
    dealt.show(witness)
    witness.checkpoint(note)
    kept = witness.story.fresh[-1]
    assert (kept.size, kept.note) == (size, note)
    assert Tree.from_edge(size, kept.edge).root() == dealt.root_at(size)
