"""The verifier detects each kind of altered frame of a house that cheats."""

from __future__ import annotations

from copy import deepcopy

import pytest

from dealer.client.event_verifier import EventVerifier, Evidence
from dealer.client.storage import SavedHead
from dealer.client.verified_log import Gap, VerifiedLog
from dealer.errors import HouseCheated
from dealer.game.commands import Draw, Move, Show, TakeSeat
from dealer.game.events import (
    EntropyRevealed,
    RoundClosed,
    SeatLeft,
)
from dealer.proof.checkpoint import Cosigner
from dealer.proof.tree import Tree
from tests.client.conftest import other_card
from tests.proof.log_builder import cosignature, ids, vectors


def evidence_of(caught: pytest.ExceptionInfo[HouseCheated]) -> Evidence:
    assert isinstance(caught.value.evidence, Evidence)
    return caught.value.evidence


def test_an_honest_round_verifies(dealt, verifier, game):
    dealt.do(Show(game.ada, "hand:1"))
    dealt.do(Move(game.ada, "return", "hand:1", "deck", where="bottom", count=1))
    dealt.shuffle()
    dealt.shuffle(steps=3)
    dealt.do(Draw(game.bob, 2))
    dealt.do(Move(game.bob, "give", "hand:2", "hand:1", count=1))
    dealt.do(game.close)
    dealt.feed(verifier)
    assert verifier.version == dealt.table.version
    assert verifier.log.heads.keys() == dealt.notes.keys()
    assert [head.size for head in verifier.log.fresh] == sorted(dealt.notes)


def test_a_viewer_knows_only_its_own_cards(dealt, verifier):
    dealt.feed(verifier)
    theirs = dealt.table.round
    ours = verifier.state.round
    assert [ours.face(c) for c in ours.cards("hand:1")] == [
        theirs.face(c) for c in theirs.cards("hand:1")
    ]
    assert [ours.face(c) for c in ours.cards("hand:2")] == [None, None]


def test_a_client_that_joins_in_a_round_verifies_its_close(dealt, game):
    verifier = EventVerifier(game.table)
    verifier.seat = 1
    verifier.begin(**dealt.describe())
    dealt.do(Draw(game.ada, 1))
    dealt.shuffle()
    dealt.do(Draw(game.ada, 1))
    dealt.do(game.close)
    dealt.feed(verifier)
    assert verifier.version == dealt.table.version


def test_a_card_other_than_the_sealed_one(dealt, verifier):
    mine = next(f for f in dealt.frames if "private" in f)
    frame = deepcopy(mine)
    frame["private"]["card"] = "As" if frame["private"]["card"] != "As" else "Ks"
    dealt.feed(verifier, until=mine)
    with pytest.raises(HouseCheated, match="not the one that was sealed") as caught:
        verifier.event(frame)
    assert evidence_of(caught).frames == (frame,)
    assert evidence_of(caught).notes == (dealt.notes[max(dealt.notes)],)
    assert any('"DeckSealed"' in leaf for leaf in evidence_of(caught).leaves)


def test_a_salt_other_than_the_sealed_one(dealt, verifier):
    mine = next(f for f in dealt.frames if "private" in f)
    frame = deepcopy(mine)
    frame["private"]["salt"] = "00" * 32
    dealt.feed(verifier, until=mine)
    with pytest.raises(HouseCheated, match="not the one that was sealed"):
        verifier.event(frame)


def test_the_opening_of_another_slot(dealt, verifier):
    mine = [f for f in dealt.frames if "private" in f]
    frame = deepcopy(mine[0])
    frame["private"] = mine[1]["private"]
    dealt.feed(verifier, until=mine[0])
    with pytest.raises(HouseCheated, match="another card than the one that was moved"):
        verifier.event(frame)


def test_a_shown_card_other_than_the_sealed_one(dealt, verifier, game):
    (shown,) = dealt.do(Show(game.bob, "hand:2"))
    frame = deepcopy(shown)
    frame["public"]["card"] = other_card(shown["public"]["card"])
    dealt.feed(verifier, until=shown)
    with pytest.raises(HouseCheated, match="cannot have happened"):
        verifier.event(frame)


def test_a_root_that_is_not_ours(dealt, verifier):
    other = dealt.fork()
    other.do(TakeSeat("Eve"))
    dealt.do(TakeSeat("Cleo"))
    dealt.feed(verifier)
    with pytest.raises(HouseCheated, match="signed another log") as caught:
        verifier.checkpoint(other.sign())
    assert evidence_of(caught).notes == (dealt.notes[max(dealt.notes)], other.sign())


def test_an_early_head_is_compared_later(dealt, verifier):
    other = dealt.fork()
    other.do(TakeSeat("Eve"))
    dealt.feed(verifier)
    verifier.checkpoint(other.sign())
    (frame,) = dealt.do(TakeSeat("Cleo"))
    with pytest.raises(HouseCheated, match="signed another log"):
        verifier.event(frame)


def test_two_heads_of_one_length(dealt, verifier):
    other = dealt.fork()
    dealt.feed(verifier)
    other.do(TakeSeat("Eve"))
    dealt.do(TakeSeat("Cleo"))
    verifier.checkpoint(other.sign())
    with pytest.raises(HouseCheated, match="two different logs of one length") as caught:
        verifier.checkpoint(dealt.sign())
    assert {other.sign(), dealt.sign()} < set(evidence_of(caught).notes)


def test_a_head_under_a_foreign_key(dealt, verifier, game):
    foreign = game.house(seed=8)
    dealt.feed(verifier)
    foreign.tree = dealt.tree
    with pytest.raises(HouseCheated, match="not signed with this table's key"):
        verifier.checkpoint(foreign.sign())


@pytest.mark.parametrize("joined", ["before", "later"])
def test_a_wrong_cosignature_of_a_player(dealt, verifier, game, joined):
    cleo, stranger = (Cosigner(bytes([seed]) * 32) for seed in (1, 2))
    dealt.do(TakeSeat("Cleo", key=cleo.public_key))
    if joined == "later":
        verifier = EventVerifier(game.table)
        verifier.begin(**dealt.describe())
    else:
        dealt.feed(verifier)
    note = dealt.sign()
    verifier.checkpoint(note + cleo.cosign(note, time=7) + stranger.cosign(note, time=7))
    verifier.checkpoint(cosignature(note, stranger, bytes(72)))
    with pytest.raises(HouseCheated, match="A signature does not verify") as caught:
        verifier.checkpoint(forged := cosignature(note, cleo, bytes(72)))
    assert forged in evidence_of(caught).notes


@pytest.mark.parametrize("size", ["now", "later"])
def test_a_head_under_another_origin(dealt, verifier, game, size):
    dealt.feed(verifier)
    if size == "later":
        dealt.do(TakeSeat("Cleo"))
    root, length = dealt.tree.root(), dealt.tree.size
    note = dealt.signer.sign(origin=f"elsewhere/t/{game.table}", size=length, root=root)
    with pytest.raises(
        HouseCheated, match=f"signed this table as elsewhere/t/{game.table}"
    ) as caught:
        verifier.checkpoint(note)
    assert note in evidence_of(caught).notes


def test_a_table_that_is_opened_under_another_origin(dealt, game):
    verifier = EventVerifier(game.table, key=dealt.signer.public_key)
    root, length = dealt.tree.root(), dealt.tree.size
    verifier.checkpoint(
        dealt.signer.sign(origin=f"elsewhere/t/{game.table}", size=length, root=root)
    )
    with pytest.raises(HouseCheated, match="as elsewhere"):
        verifier.event(dealt.frames[0])


def test_a_returning_client_and_another_origin(dealt, game):
    root, edge, length = dealt.tree.root(), dealt.tree.edge, dealt.tree.size
    note = dealt.signer.sign(origin=f"elsewhere/t/{game.table}", size=length, root=root)
    head = SavedHead(length, note, tuple(edge))
    verifier = EventVerifier(game.table, key=dealt.signer.public_key, saved=[head])
    dealt.do(TakeSeat("Cleo"))
    with pytest.raises(HouseCheated, match="as elsewhere"):
        verifier.begin(**dealt.describe())


def test_a_table_whose_key_changed(dealt, game):
    verifier = EventVerifier(game.table, key=bytes(32))
    with pytest.raises(HouseCheated, match="key has changed"):
        verifier.event(dealt.frames[0])
    with pytest.raises(HouseCheated, match="key has changed"):
        EventVerifier(game.table, key=bytes(32)).begin(**dealt.describe())


def test_a_missing_version_is_a_gap(dealt, verifier):
    verifier.event(dealt.frames[0])
    with pytest.raises(Gap):
        verifier.event(dealt.frames[2])
    assert verifier.log.resume_after() == 1


def test_a_duplicate_event(dealt, verifier):
    dealt.feed(verifier)
    assert verifier.event(dealt.frames[3]) is None
    assert verifier.version == dealt.table.version
    other = deepcopy(dealt.frames[3])
    other["at"] += 1
    with pytest.raises(HouseCheated, match="two different events"):
        verifier.event(other)


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
def test_a_malformed_leaf(house, verifier, alter):
    verifier.event(house.frames[0])
    with pytest.raises(HouseCheated):
        verifier.event(house.frames[1] | alter)


@pytest.mark.parametrize("member", ["at", "public", "version", "type", "table"])
def test_a_leaf_with_a_missing_member(house, verifier, member):
    frame = dict(house.frames[0])
    del frame[member]
    with pytest.raises(HouseCheated):
        verifier.event(frame)


def test_a_secret_that_was_not_committed(dealt, verifier):
    dealt.record(RoundClosed(1, b"\x02" * 64))
    with pytest.raises(HouseCheated, match="contradicts the round"):
        dealt.feed(verifier)


def test_a_swap_that_the_tape_does_not_give(house, verifier, game):
    house.swap_nothing()
    closing_reveals_cheating(house, verifier, game)


def test_a_seal_in_another_order_than_the_swaps(house, verifier, game):
    house.seal_another_order()
    closing_reveals_cheating(house, verifier, game)


def test_a_hidden_commitment_to_another_drawn_card(dealt, verifier, game):
    dealt.draw_another_card()
    closing_reveals_cheating(dealt, verifier, game)


def closing_reveals_cheating(house, verifier, game):
    house.feed(verifier)
    (close,) = house.do(game.close)
    with pytest.raises(HouseCheated, match="contradicts the round"):
        verifier.event(close)


def test_a_reset_needs_a_proof(dealt, verifier, game):
    dealt.feed(verifier)
    before = verifier.version
    dealt.do(TakeSeat("Cleo"))
    dealt.do(Draw(game.ada, 1))
    described = dealt.describe()
    with pytest.raises(HouseCheated, match="showed an older log"):
        verifier.reset(**described, proof=None, after=verifier.version)
    verifier.reset(**described, proof=dealt.proof(before), after=before)
    assert verifier.version == dealt.table.version
    dealt.do(game.close)
    dealt.feed(verifier)
    assert verifier.version == dealt.table.version


def test_a_reset_from_a_saved_head_that_was_linked_meanwhile(dealt, verifier, game):
    """Two resumes from the saved head: the first one's events linked it, the other is too late."""
    saved = saved_of(dealt)
    dealt.do(TakeSeat("Cleo"))
    dealt.do(Draw(game.ada, 1))
    verifier = EventVerifier(game.table, saved=[saved])
    verifier.begin(**dealt.describe())
    for frame in dealt.frames[saved.size :]:
        verifier.event(frame)
    assert verifier.log.linked
    start = verifier.version
    dealt.do(TakeSeat("Dora"))
    with pytest.raises(Gap):
        verifier.reset(**dealt.describe(), proof=dealt.proof(saved.size), after=saved.size)
    verifier.reset(**dealt.describe(), proof=dealt.proof(start), after=start)
    assert verifier.version == start + 1


def test_the_signed_head_of_a_reset_that_proves_nothing_is_kept(dealt, game):
    """The house shows a fork in it, and then continues the log that this client has."""
    saved = saved_of(dealt)
    dealt.do(TakeSeat("Cleo"))
    verifier = EventVerifier(game.table, saved=[saved])
    verifier.begin(**dealt.describe())
    for frame in dealt.frames[saved.size :]:
        verifier.event(frame)
    fork = dealt.fork()
    fork.do(TakeSeat("Eve"))
    with pytest.raises(Gap):
        verifier.reset(**fork.describe(), proof=None, after=saved.size)
    dealt.do(TakeSeat("Dora"))
    with pytest.raises(HouseCheated, match="signed another log"):
        dealt.feed(verifier)


def test_two_resets_from_one_version(dealt, verifier):
    """A host who plays resumes twice; the table may change between the answers."""
    dealt.feed(verifier)
    before = verifier.version
    dealt.do(TakeSeat("Cleo"))
    verifier.reset(**dealt.describe(), proof=dealt.proof(before), after=before)
    verifier.reset(**dealt.describe(), proof=dealt.proof(before), after=before)
    between = verifier.version
    dealt.do(TakeSeat("Dora"))
    with pytest.raises(Gap):  # proves nothing about what came in between
        verifier.reset(**dealt.describe(), proof=dealt.proof(before), after=before)
    assert verifier.version == between
    verifier.reset(**dealt.describe(), proof=dealt.proof(between), after=between)
    assert verifier.version == dealt.table.version


def test_the_snapshot_of_another_resume(dealt, verifier):
    """Of one before the latest: its proof is from a version that this client does not know of."""
    dealt.feed(verifier)
    before = verifier.version
    dealt.do(TakeSeat("Cleo"))
    with pytest.raises(Gap):
        verifier.reset(**dealt.describe(), proof=dealt.proof(before), after=0)


def test_entropy_that_was_not_committed(house, verifier):
    house.start_with_digests()
    house.record(EntropyRevealed(1, 0, 2, b"\x01" * 32))
    with pytest.raises(HouseCheated, match="cannot have happened"):
        house.feed(verifier)


def test_a_reset_to_another_history(dealt, verifier):
    other = dealt.fork()
    dealt.do(TakeSeat("Cleo"))
    dealt.feed(verifier)
    other.do(TakeSeat("Eve"))
    other.do(TakeSeat("Finn"))
    with pytest.raises(HouseCheated, match="does not continue"):
        verifier.reset(
            **other.describe(), proof=other.proof(verifier.version), after=verifier.version
        )


def test_a_log_that_lost_its_last_events(dealt, verifier):
    older = dealt.fork()
    dealt.do(TakeSeat("Cleo"))
    dealt.feed(verifier)
    with pytest.raises(HouseCheated, match="showed an older log"):
        verifier.reset(**older.describe(), proof=None, after=verifier.version)


def test_a_shorter_log_announced_without_a_resume(dealt, verifier):
    """The log is a prefix of what the client saw, and the client sent no resume."""
    older = dealt.fork()
    dealt.do(TakeSeat("Cleo"))
    dealt.feed(verifier)
    with pytest.raises(HouseCheated, match="showed an older log"):
        verifier.reset(**older.describe(), proof=None, after=0)


def saved_of(house):
    return SavedHead(house.tree.size, house.sign(), tuple(house.tree.edge))


def test_a_returning_client_needs_the_events_since_its_head(dealt, game):
    saved = saved_of(dealt)
    dealt.do(TakeSeat("Cleo"))
    dealt.do(Draw(game.ada, 1))
    verifier = EventVerifier(game.table, saved=[saved])
    verifier.begin(**dealt.describe())
    assert not verifier.log.linked
    assert verifier.log.resume_after() == saved.size
    for frame in dealt.frames[saved.size :]:
        assert verifier.event(frame) is None
    assert verifier.log.linked
    assert verifier.log.resume_after() == verifier.version


def test_a_returning_client_and_another_log(dealt, game):
    other = dealt.fork()
    dealt.do(TakeSeat("Cleo"))
    saved = saved_of(dealt)
    other.do(TakeSeat("Eve"))
    other.do(Draw(game.ada, 1))
    verifier = EventVerifier(game.table, saved=[saved])
    verifier.begin(**other.describe())
    for frame in other.frames[saved.size : -1]:
        verifier.event(frame)
    with pytest.raises(HouseCheated, match="does not continue"):
        verifier.event(other.frames[-1])
    from_the_start = EventVerifier(game.table, saved=[saved], key=other.signer.public_key)
    with pytest.raises(HouseCheated, match="signed another log"):
        other.feed(from_the_start)


def test_a_snapshot_under_another_signed_root(dealt, game):
    described = dealt.describe()
    described["edge"][0] = "00" * 32
    with pytest.raises(HouseCheated, match="signed another log"):
        EventVerifier(game.table).begin(**described)


@pytest.mark.parametrize("member", ["seats", "rules", "version", "key"])
def test_a_snapshot_with_a_missing_member(dealt, game, member):
    described = dealt.describe()
    del described["state"][member]
    with pytest.raises(HouseCheated, match="cannot be a state"):
        EventVerifier(game.table).begin(**described)


def test_a_wrong_face_in_a_snapshot(dealt, game):
    described = dealt.describe()
    first, second = described["state"]["round"]["cards"]
    first[1], second[1] = second[1], first[1]
    with pytest.raises(HouseCheated, match="not the one that was sealed"):
        EventVerifier(game.table).begin(**described)


def test_a_wrong_salt_in_a_snapshot_is_detected_at_the_close(dealt, game):
    """A house that also falsifies the seal is detected when its secret is known."""
    verifier = EventVerifier(game.table)
    verifier.begin(**dealt.describe_with_wrong_salt())
    closing_reveals_cheating(dealt, verifier, game)


def test_a_late_head_is_stored(dealt, verifier):
    """Entropy is revealed under it: after a restart no other log may be accepted."""
    dealt.record(SeatLeft(2))
    note, size = dealt.sign(), dealt.table.version
    dealt.do(TakeSeat("Cleo"))
    dealt.feed(verifier)
    verifier.checkpoint(note)
    kept = verifier.log.fresh[-1]
    assert (kept.size, kept.note) == (size, note)
    assert Tree.from_edge(size, kept.edge).root() == dealt.root_at(size)


@pytest.mark.parametrize("vector", vectors("heads"), ids=ids)
def test_vectors_of_notes(vector):
    """A received note and a saved one are valid by the same rule."""
    given = vector["in"]
    key, origin = bytes.fromhex(given["key"]), f"cards.example/t/{given['table']}"

    def opens(note, *saved):
        log = VerifiedLog(given["table"], key=key, saved=saved)
        log.cosigners = set(map(bytes.fromhex, given["players"]))
        try:
            log.pin(key, origin)
            if note:
                log.checkpoint(note)
        except HouseCheated:
            return False
        return True

    for one in vector["out"]:
        if one["note"]:
            assert opens(one["note"]) == one["opens"], one["name"]
        assert opens("", SavedHead(1, one["note"], ())) == one["opens"], one["name"]
