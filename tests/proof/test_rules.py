"""Each rule of the protocol, violated by one event of a correctly signed log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dealer.proof.canonical import encode
from dealer.proof.round_keys import RoundKeys
from dealer.proof.verify import verify
from tests.proof.log_builder import CARDS, LogBuilder, sign, some_bytes

Step = Callable[[LogBuilder], object]
X = "0" * 64


def table() -> LogBuilder:
    return LogBuilder().open_table().sit(1).sit(2)


def players() -> LogBuilder:
    """A round with players' entropy, before its first shuffle."""
    return table().open_round(CARDS, "players")


def dealt() -> LogBuilder:
    """Seven cards shuffled without players' entropy; seat 1 holds slot 6, the deck is 0 … 5."""
    return table().open_round(CARDS).shuffle().draw(1)


def partial() -> LogBuilder:
    """Only slots 5 and 6 were reached by a shuffle; the deck is 0 … 6."""
    return table().open_round(CARDS).shuffle(steps=2)


def closed() -> LogBuilder:
    return players().start().commit(1).commit(2).close()


def revealed() -> LogBuilder:
    return closed().reveal(1).reveal(2)


def first_step(log: LogBuilder) -> tuple[int, int, int]:
    return next(log.plan([1, 2]))


def swap_once(log: LogBuilder) -> LogBuilder:
    return log.swap(*first_step(log))


def wrong_j(log: LogBuilder) -> object:
    step, i, j = first_step(log)
    return log.swap(step, i, (j + 1) % (i + 1))


def swap_all_but_the_last(log: LogBuilder) -> LogBuilder:
    for step in list(log.plan([1, 2]))[:-1]:
        log.swap(*step)
    return log


def sealed_with(**changes: Any) -> Step:
    def seal(log: LogBuilder) -> object:
        for step in log.plan([1, 2]):
            log.swap(*step)
        cards = log.stacks["deck"]
        faces = [log.face(card) for card in cards]
        slots = [slot.hex() for slot in log.keys.slot_commitments(0, faces)]
        public = {"round": 1, "k": 0, "first": 0, "slots": slots, **changes}
        if "cut_slots" in public:
            public["slots"] = slots[: public.pop("cut_slots")]
        if public.pop("exchange", False):
            public["slots"] = [slots[1], slots[0], *slots[2:]]
        return log.append("DeckSealed", **public)

    return seal


def shuffle_with_notes(log: LogBuilder) -> object:
    for step in log.plan([1, 2]):
        log.swap(*step).note(2)
    return log.seal()


def append(type_: str, hidden: object = None, **public: Any) -> Step:
    return lambda log: log.append(type_, hidden, **public)


def commit(seat: int = 1, k: int = 0) -> Step:
    return lambda log: log.commit(seat, k)


def draw(slot: int, *, seat: int = 2, source: str = "deck", card: str | None = None) -> Step:
    return lambda log: log.append(
        "CardDrawn",
        {"card": card or log.face(slot)},
        round=1,
        seat=seat,
        source=source,
        slot=slot,
    )


def move(slot: int, source: str, to: str, place: int = 0, card: str | None = None) -> Step:
    def step(log: LogBuilder) -> object:
        hidden = {"card": card or log.face(slot)} if to.startswith("hand:") else None
        return log.append(
            "CardMoved", hidden, round=1, slot=slot, source=source, to=to, place=place
        )

    return step


def show(slot: int, *, salt_of: int | None = None, card: str | None = None) -> Step:
    def step(log: LogBuilder) -> object:
        salt = log.keys.slot_salt(slot if salt_of is None else salt_of).hex()
        face = log.face(slot) if card is None else card
        return log.append("CardShown", round=1, slot=slot, card=face, salt=salt)

    return step


def opened(number: int, **changes: Any) -> Step:
    public: dict[str, Any] = {
        "round": number,
        "deck": ["As"],
        "entropy": "house",
        "commit_ms": 0,
        "reveal_ms": 0,
        "commitment": X,
        **changes,
    }
    return append("RoundOpened", **public)


def start(**changes: Any) -> Step:
    public: dict[str, Any] = {
        "round": 1,
        "k": 0,
        "stack": "deck",
        "n": 7,
        "algorithm": "backward",
        "steps": 6,
        **changes,
    }
    return append("ShuffleStarted", **public)


def then(*steps: Callable[[LogBuilder], Any]) -> Step:
    def do(log: LogBuilder) -> None:
        for step in steps:
            step(log)

    return do


RULES: list[tuple[str, str, Callable[[], LogBuilder], Step]] = [
    # seats and the table
    ("moves", "a seat is taken twice", table, append("SeatTaken", seat=1, name="Eve")),
    ("moves", "an empty seat is left", table, append("SeatLeft", seat=3)),
    (
        "moves",
        "a seat is left twice",
        table,
        then(append("SeatLeft", seat=1), append("SeatLeft", seat=1)),
    ),
    ("moves", "an empty seat is vacated", table, lambda s: s.vacate(3)),
    ("moves", "a vacated seat is left", lambda: table().vacate(1), append("SeatLeft", seat=1)),
    ("secrets", "a player who was removed", lambda: players().vacate(1), commit()),
    ("moves", "a vacated seat draws", lambda: dealt().vacate(2), lambda s: s.draw(2)),
    ("moves", "the host is an empty seat", table, lambda s: s.transfer(3)),
    ("moves", "a note of an empty seat", table, lambda s: s.note(3)),
    ("moves", "a note after the end", lambda: table().close_table(), lambda s: s.note()),
    ("moves", "a host after the end", lambda: table().close_table(), lambda s: s.transfer(1)),
    ("moves", "a seat vacated after the end", lambda: table().close_table(), lambda s: s.vacate(1)),
    ("form", "a removal by a seat", table, lambda s: s.vacate(1, by="seat")),
    ("secrets", "a reason of 257 bytes", table, lambda s: s.vacate(1, reason="\u00e9" * 128 + "x")),
    ("secrets", "a note of 2,049 bytes", table, lambda s: s.note(text="\u00e9" * 1024 + "x")),
    ("form", "a note without a kind", table, lambda s: s.note(kind="")),
    ("form", "a kind of 65 characters", table, lambda s: s.note(kind="a" * 65)),
    ("form", "a kind in capitals", table, lambda s: s.note(kind="Chat")),
    ("form", "a note of seat 2^32", table, lambda s: s.note(2**32)),
    (
        "form",
        "a bot that is none",
        table,
        append("SeatTaken", seat=3, name="Eve", bot=False),
    ),
    ("moves", "the table closes over an open round", dealt, append("TableClosed")),
    (
        "moves",
        "a seat is taken after the end",
        lambda: table().close_table(),
        append("SeatTaken", seat=3, name="Eve"),
    ),
    ("moves", "the table is closed twice", lambda: table().close_table(), append("TableClosed")),
    ("secrets", "a round opens after the end", lambda: table().close_table(), opened(1)),
    (
        "tape",
        "a shuffle starts after the end",
        lambda: dealt().close_round().close_table(),
        start(k=1, n=6, steps=5),
    ),
    # rounds
    ("secrets", "the first round is not 1", table, opened(2)),
    ("secrets", "two rounds are open", dealt, opened(2)),
    ("secrets", "a round is counted twice", lambda: dealt().close_round(), opened(1)),
    ("secrets", "a round is left out", lambda: dealt().close_round(), opened(3)),
    ("secrets", "another round is closed", dealt, append("RoundClosed", round=2, secret=X)),
    (
        "secrets",
        "a round is closed twice",
        lambda: dealt().close_round(),
        append("RoundClosed", round=1, secret=X),
    ),
    ("secrets", "there is no round to close", table, append("RoundClosed", round=1, secret=X)),
    ("secrets", "a round is closed under a shuffle", closed, lambda s: s.close_round()),
    # starting a shuffle
    ("tape", "there is no round to shuffle in", table, start()),
    ("tape", "it is another round", players, start(round=2)),
    ("tape", "k begins above 0", players, start(k=1)),
    ("tape", "k is repeated after a seal", dealt, start(k=0, n=6, steps=5)),
    ("tape", "k is repeated after a void", lambda: closed().reveal(1).void(), start(k=0)),
    ("tape", "two shuffles run", lambda: players().start(), start()),
    ("tape", "the next shuffle starts under this one", lambda: players().start(), start(k=1)),
    ("tape", "a hand is shuffled", dealt, start(k=1, stack="hand:1", n=1, steps=0)),
    ("tape", "n is too large", players, start(n=8)),
    ("tape", "n is too small", players, start(n=6, steps=5)),
    ("tape", "n counts a card that was drawn", dealt, start(k=1)),
    ("tape", "there are too many steps", players, start(steps=7)),
    ("tape", "there is a step for no card", players, start(stack="pile:p", n=0, steps=1)),
    ("tape", "forward is partial", players, start(algorithm="forward", steps=5)),
    (
        "tape",
        "a round's first shuffle starts after its end",
        lambda: players().close_round(),
        start(),
    ),
    # digests
    ("secrets", "a digest in a house round", lambda: table().open_round(CARDS), commit()),
    ("secrets", "a digest without a round", lambda: players().close_round(), commit()),
    (
        "secrets",
        "a digest of another round",
        players,
        append("EntropyCommitted", round=2, k=0, seat=1, digest=X),
    ),
    ("secrets", "two digests of a seat", lambda: players().start().commit(1), commit()),
    ("secrets", "two digests ahead of time", lambda: players().commit(1), commit()),
    (
        "secrets",
        "one digest ahead of time and one in time",
        lambda: players().commit(1).start(),
        commit(),
    ),
    ("secrets", "the seat is not taken", players, commit(seat=3)),
    ("secrets", "a player who left", lambda: players().append("SeatLeft", seat=1), commit()),
    ("secrets", "a digest for the shuffle after the next", players, commit(k=1)),
    ("secrets", "a digest for the next while one runs", lambda: players().start(), commit(k=1)),
    ("secrets", "a digest for the next while one is closed", closed, commit(k=1)),
    ("secrets", "a digest for a shuffle that is sealed", lambda: players().shuffle(), commit(k=0)),
    ("secrets", "a digest after C1", lambda: players().start().commit(1).close(), commit(seat=2)),
    ("secrets", "a seat that withheld", lambda: closed().reveal(1).void(), commit(seat=2, k=1)),
    (
        "secrets",
        "a seat that withheld and was taken again",
        lambda: closed().reveal(1).void().append("SeatLeft", seat=2).sit(2),
        commit(seat=2, k=1),
    ),
    # closing, revealing, voiding
    ("secrets", "no shuffle to close", players, append("EntropyClosed", round=1, k=0)),
    (
        "secrets",
        "another shuffle is closed",
        lambda: players().start(),
        append("EntropyClosed", round=1, k=1),
    ),
    (
        "secrets",
        "another round's shuffle is closed",
        lambda: players().start(),
        append("EntropyClosed", round=2, k=0),
    ),
    ("secrets", "closed twice", closed, append("EntropyClosed", round=1, k=0)),
    ("secrets", "a reveal before C1", lambda: players().start().commit(1), lambda s: s.reveal(1)),
    ("secrets", "a reveal without a shuffle", lambda: players().commit(1), lambda s: s.reveal(1)),
    (
        "secrets",
        "a reveal by a seat without a digest",
        closed,
        append("EntropyRevealed", round=1, k=0, seat=3, nonce=X),
    ),
    (
        "secrets",
        "a reveal of other bytes",
        closed,
        append("EntropyRevealed", round=1, k=0, seat=1, nonce=X),
    ),
    (
        "secrets",
        "a reveal of another seat's bytes",
        closed,
        lambda s: s.append("EntropyRevealed", round=1, k=0, seat=1, nonce=s.nonce(2).hex()),
    ),
    (
        "secrets",
        "a reveal for another shuffle",
        closed,
        lambda s: s.append("EntropyRevealed", round=1, k=1, seat=1, nonce=s.nonce(1).hex()),
    ),
    ("secrets", "a reveal twice", lambda: closed().reveal(1), lambda s: s.reveal(1)),
    (
        "secrets",
        "a reveal after the seat was left with its digest",
        lambda: players().start().commit(1).append("SeatLeft", seat=1).close(),
        lambda s: s.reveal(1),
    ),
    (
        "secrets",
        "a reveal after the seat was left with its early digest",
        lambda: players().commit(1).append("SeatLeft", seat=1).start().close(),
        lambda s: s.reveal(1),
    ),
    (
        "secrets",
        "a copied digest is opened",
        lambda: (
            lambda s: (
                s.append(
                    "EntropyCommitted",
                    round=1,
                    k=0,
                    seat=2,
                    digest=s.leaves[-1]["public"]["digest"],
                )
                .close()
                .reveal(1)
            )
        )(players().start().commit(1)),
        lambda s: s.append("EntropyRevealed", round=1, k=0, seat=2, nonce=s.nonce(1).hex()),
    ),
    ("secrets", "voided before C1", lambda: players().start().commit(1), lambda s: s.void()),
    ("secrets", "voided with all reveals", revealed, lambda s: s.void()),
    (
        "secrets",
        "voided although no reveal was expected",
        lambda: players().start().close(),
        lambda s: s.void(),
    ),
    ("secrets", "voided after swaps", revealed, then(swap_once, lambda s: s.void())),
    ("secrets", "voided without a shuffle", dealt, append("ShuffleVoided", round=1, k=1)),
    # swaps
    (
        "tape",
        "a swap without a shuffle",
        players,
        append("CardsSwapped", {"j": 0}, round=1, k=0, step=0, i=6),
    ),
    (
        "tape",
        "a swap before C1",
        lambda: players().start().commit(1),
        append("CardsSwapped", {"j": 0}, round=1, k=0, step=0, i=6),
    ),
    (
        "tape",
        "a swap before all reveals",
        lambda: closed().reveal(1),
        append("CardsSwapped", {"j": 0}, round=1, k=0, step=0, i=6),
    ),
    (
        "tape",
        "a swap of another shuffle",
        revealed,
        append("CardsSwapped", {"j": 0}, round=1, k=1, step=0, i=6),
    ),
    (
        "tape",
        "the first step is left out",
        revealed,
        append("CardsSwapped", {"j": 0}, round=1, k=0, step=1, i=5),
    ),
    (
        "tape",
        "a step is done twice",
        lambda: swap_once(revealed()),
        lambda s: s.swap(*first_step(s)),
    ),
    ("tape", "the step is wrong", revealed, lambda s: s.swap(1, 6, first_step(s)[2])),
    ("tape", "i is wrong", revealed, lambda s: s.swap(0, 5, first_step(s)[2])),
    ("tape", "j is wrong", revealed, wrong_j),
    (
        "tape",
        "the commitment hides more",
        revealed,
        lambda s: s.append(
            "CardsSwapped", {"j": first_step(s)[2], "x": 1}, round=1, k=0, step=0, i=6
        ),
    ),
    ("tape", "a tape without the players' bytes", revealed, lambda s: s.swap(*next(s.plan([])))),
    ("tape", "a tape with one player's bytes", revealed, lambda s: s.swap(*next(s.plan([1])))),
    (
        "tape",
        "one step too many",
        revealed,
        then(
            lambda s: [s.swap(*step) for step in s.plan([1, 2])],
            append("CardsSwapped", {"j": 0}, round=1, k=0, step=6, i=0),
        ),
    ),
    # seals
    (
        "seals",
        "no shuffle to seal",
        dealt,
        append("DeckSealed", round=1, k=1, first=7, slots=[X] * 6),
    ),
    ("seals", "sealed without a swap", revealed, lambda s: s.seal()),
    (
        "seals",
        "sealed before the last swap",
        lambda: swap_all_but_the_last(revealed()),
        lambda s: s.seal(),
    ),
    ("seals", "sealed before C1", lambda: players().start(steps=0).commit(1), lambda s: s.seal()),
    (
        "seals",
        "sealed before a reveal",
        lambda: players().start(steps=0).commit(1).close(),
        lambda s: s.seal(),
    ),
    ("seals", "first is wrong", revealed, sealed_with(first=1)),
    ("seals", "another k is sealed", revealed, sealed_with(k=1)),
    ("seals", "a slot is missing", revealed, sealed_with(cut_slots=6)),
    ("seals", "there is no slot", revealed, sealed_with(cut_slots=0)),
    ("seals", "there is a slot too many", revealed, lambda s: sealed_with(slots=[X] * 8)(s)),
    ("seals", "two slots are exchanged", revealed, sealed_with(exchange=True)),
    (
        "seals",
        "slots begin again at 0",
        lambda: dealt().start(steps=0).close(),
        lambda s: s.append(
            "DeckSealed",
            round=1,
            k=1,
            first=0,
            slots=[
                slot.hex()
                for slot in s.keys.slot_commitments(0, [s.face(c) for c in s.stacks["deck"]])
            ],
        ),
    ),
    # drawing
    (
        "moves",
        "a draw before the first seal",
        players,
        append("CardDrawn", {"card": "As"}, round=1, seat=1, source="deck", slot=0),
    ),
    ("moves", "a draw under a shuffle", lambda: dealt().start(), draw(5)),
    ("moves", "a draw after the round", lambda: dealt().close_round(), draw(5)),
    ("moves", "a draw from a pile where the card is not", dealt, draw(5, source="pile:burn")),
    ("moves", "a draw of a drawn card", dealt, draw(6)),
    ("moves", "a draw from a hand", dealt, draw(6, source="hand:1")),
    ("moves", "a draw of a slot that was never made", dealt, draw(7, card="As")),
    ("moves", "a draw of an old slot", lambda: dealt().shuffle(), draw(5)),
    ("moves", "a draw for a seat that is not taken", dealt, draw(5, seat=3)),
    (
        "moves",
        "a draw for a seat that was left",
        lambda: dealt().append("SeatLeft", seat=2),
        draw(5),
    ),
    ("moves", "the draw commits to another card", dealt, draw(5, card="7s")),
    ("moves", "no shuffle reached the card", partial, draw(4)),
    ("moves", "a cut brought an unreached card to the top", lambda: partial().cut(5), draw(4)),
    (
        "moves",
        "an unreached card was moved by a pile",
        lambda: partial().move(4, "deck", "pile:p"),
        draw(4, source="pile:p"),
    ),
    (
        "moves",
        "an unreached card after two partial shuffles",
        lambda: partial().shuffle(steps=1),
        draw(12),
    ),
    # moving
    ("moves", "a move under a shuffle", lambda: dealt().start(), move(5, "deck", "pile:p")),
    ("moves", "the card lies elsewhere", dealt, move(5, "pile:p", "deck")),
    ("moves", "a slot that was never made", dealt, move(7, "deck", "pile:p")),
    ("moves", "the place is above the top", dealt, move(5, "deck", "pile:p", 1)),
    ("moves", "the place counts the card itself", dealt, move(5, "deck", "deck", 6)),
    (
        "moves",
        "a card comes to a hand that does not exist",
        dealt,
        move(5, "deck", "hand:3", card="As"),
    ),
    (
        "moves",
        "a move to a hand commits to another card",
        dealt,
        move(6, "hand:1", "hand:2", card="zz"),
    ),
    ("moves", "an unreached card comes to a hand", partial, move(0, "deck", "hand:1")),
    ("moves", "a move before the first seal", players, move(0, "deck", "pile:p")),
    (
        "moves",
        "a move in another round",
        dealt,
        append("CardMoved", round=2, slot=5, source="deck", to="pile:p", place=0),
    ),
    # showing
    (
        "seals",
        "another card is shown",
        dealt,
        lambda s: show(5, card=next(c for c in CARDS if c != s.face(5)))(s),
    ),
    ("seals", "another slot's salt is shown", dealt, show(5, salt_of=4)),
    ("seals", "an old slot is shown", lambda: dealt().shuffle(), show(5)),
    ("seals", "a slot that was never made is shown", dealt, show(7, card="As")),
    ("seals", "a card is shown under a shuffle", lambda: dealt().start(), show(6)),
    ("seals", "a card is shown after the round", lambda: dealt().close_round(), show(6)),
    ("moves", "a peek under a shuffle", lambda: dealt().start(), lambda s: s.peek(6, 1)),
    ("moves", "a peek at an old slot", lambda: dealt().shuffle(), lambda s: s.peek(5, 1)),
    ("moves", "a peek at a slot that was never made", dealt, lambda s: s.peek(7, 1)),
    ("moves", "a peek by a seat that is not taken", dealt, lambda s: s.peek(5, 3)),
    # cutting
    ("moves", "a cut above the top", dealt, append("StackCut", round=1, stack="deck", at=7)),
    ("moves", "a cut of no pile", dealt, append("StackCut", round=1, stack="pile:p", at=1)),
    ("moves", "a hand is cut", dealt, append("StackCut", round=1, stack="hand:1", at=0)),
    ("moves", "a cut under a shuffle", lambda: players().start(), lambda s: s.cut(3)),
    ("moves", "a cut without a round", table, append("StackCut", round=1, stack="deck", at=0)),
]

LEGAL: list[tuple[str, Callable[[], LogBuilder], Step]] = [
    ("a seat is taken under a shuffle", closed, lambda s: s.sit(3)),
    ("a seat is left under a shuffle", closed, append("SeatLeft", seat=1)),
    ("a seat is vacated under a shuffle", closed, lambda s: s.vacate(1)),
    ("the host changes under a shuffle", closed, lambda s: s.transfer(1)),
    ("a note under a shuffle", closed, lambda s: s.note(1)),
    ("a note between two swaps", revealed, shuffle_with_notes),
    ("a note of the host without a round", table, lambda s: s.note(0, "a" * 64, "\u00e9" * 1024)),
    ("a reason of 256 bytes", table, lambda s: s.vacate(2, by="service", reason="x" * 256)),
    ("a bot sits down", table, lambda s: s.sit(3, bot=True)),
    (
        "a removed player's digest is dropped before C1",
        lambda: players().start().commit(1).vacate(1).sit(1),
        commit(1),
    ),
    (
        "a player who left opens a digest that counts",
        lambda: closed().append("SeatLeft", seat=1),
        lambda s: s.reveal(1),
    ),
    (
        "a new player sends a digest of their own",
        lambda: players().commit(1).append("SeatLeft", seat=1).sit(1),
        commit(1),
    ),
    (
        "a digest that counted is dropped before C1",
        lambda: players().start().commit(1).append("SeatLeft", seat=1).sit(1),
        commit(1),
    ),
    (
        "a seat that withheld may play on",
        lambda: closed().reveal(1).void().shuffle(),
        lambda s: s.draw(2),
    ),
    (
        "a seat that withheld commits in the next round",
        lambda: closed().reveal(1).void().close_round().open_round(CARDS, "players"),
        commit(2),
    ),
    ("a cut at the bottom", dealt, lambda s: s.cut(0)),
    ("a cut at the top", dealt, lambda s: s.cut(6)),
    ("a cut before the first shuffle", players, lambda s: s.cut(3).shuffle().draw(1)),
    ("a reached card that is not on top", partial, draw(5)),
    ("a reached card after a cut", lambda: partial().cut(5), draw(5)),
    ("an unreached card goes to a pile", partial, move(0, "deck", "pile:burn")),
    ("an unreached card is shown", partial, show(0)),
    ("a full shuffle after a partial one reaches all", lambda: partial().shuffle(), draw(7)),
    ("reached cards stay reached after any shuffle", lambda: dealt().shuffle(steps=0), draw(7)),
    ("a move to the top place of its own stack", dealt, move(5, "deck", "deck", 5)),
    (
        "a card comes to the hand of a seat that was left",
        lambda: dealt().append("SeatLeft", seat=2),
        move(5, "deck", "hand:2"),
    ),
    (
        "cards of a player who left",
        lambda: dealt().append("SeatLeft", seat=1),
        move(6, "hand:1", "hand:2"),
    ),
    ("a card is shown twice", lambda: dealt().show(6), show(6)),
    ("an empty pile is cut", dealt, append("StackCut", round=1, stack="pile:p", at=0)),
    ("a round without a shuffle", players, lambda s: s.close_round()),
    ("a voided shuffle only", lambda: closed().void(), lambda s: s.close_round()),
]


def outcome(log: LogBuilder) -> tuple[str, int] | None:
    fault = verify(log.lines(), key=log.signer.public_key).fault
    return None if fault is None else (fault.check, fault.line)


FOUND_BY_THE_SECRET = {
    "j is wrong",
    "the commitment hides more",
    "a tape without the players' bytes",
    "a tape with one player's bytes",
    "two slots are exchanged",
    "the draw commits to another card",
    "a move to a hand commits to another card",
}


@pytest.mark.parametrize(
    ("check", "name", "build", "violate"), RULES, ids=[name for _, name, _, _ in RULES]
)
def test_a_broken_rule_is_named(
    check: str, name: str, build: Callable[[], LogBuilder], violate: Step
) -> None:
    log = build()
    assert outcome(log) is None
    violate(log)
    version = len(log.leaves)
    while_open = None if name in FOUND_BY_THE_SECRET else (check, version)
    assert outcome(log) == while_open
    if log.round:
        assert outcome(log.close_round()) == (check, version)


@pytest.mark.parametrize(
    ("build", "legal"),
    [(build, legal) for _, build, legal in LEGAL],
    ids=[name for name, _, _ in LEGAL],
)
def test_legal_events_verify(build: Callable[[], LogBuilder], legal: Step) -> None:
    log = build()
    legal(log)
    assert outcome(log) is None


def test_the_swap_is_checked_only_where_the_secret_is_known() -> None:
    """A wrong j in an open round passes; it is detected when the round is closed."""
    log = revealed()
    wrong_j(log)
    assert outcome(log) is None
    version = len(log.leaves)
    for step in list(log.plan([1, 2]))[1:]:
        log.swap(*step)
    log.seal().close_round()
    assert outcome(log) == ("tape", version)


@pytest.mark.parametrize(
    "wrong", [wrong_j, lambda s: s.swap(*next(s.plan([])))], ids=["j", "entropy"]
)
def test_a_wrong_swap_passes_until_its_round_is_closed(wrong: Step) -> None:
    log = revealed()
    wrong(log)
    version = len(log.leaves)
    assert outcome(log.append("TableClosed")) == ("moves", version + 1)


def test_a_seal_that_fits_the_tape_of_another_order() -> None:
    log = revealed()
    for step in log.plan([1, 2]):
        log.swap(*step)
    cards = log.stacks["deck"]
    cards[0], cards[1] = cards[1], cards[0]
    log.seal().close_round()
    assert outcome(log) == ("seals", len(log.leaves) - 1)


@pytest.mark.parametrize("length", [31, 33, 64, 1])
def test_a_secret_of_another_length(length: int) -> None:
    secret = some_bytes("S", length=length)
    log = table().open_round(CARDS, secret=secret).shuffle().close_round()
    assert outcome(log) == ("secrets", 4)


def test_a_secret_that_was_not_committed_to() -> None:
    log = dealt()
    log.secret = some_bytes("another")
    assert outcome(log.close_round()) == ("secrets", 4)


def test_the_secret_of_another_table_or_round() -> None:
    log = table()
    for keys in (
        RoundKeys(table=log.table, round=2, secret=some_bytes("S", 1)),
        RoundKeys(table=some_bytes("t", length=16), round=1, secret=some_bytes("S", 1)),
    ):
        other = table().open_round(CARDS, secret=some_bytes("S", 1))
        other.leaves[-1]["public"]["commitment"] = keys.commitment.hex()
        assert outcome(other.close_round()) == ("secrets", 4)


def test_a_secret_of_another_round_number_is_not_used() -> None:
    """The RoundClosed of another round is the fault, and leaves this round open."""
    log = dealt()
    log.append("RoundClosed", round=2, secret=log.secret.hex())
    assert outcome(log) == ("secrets", len(log.leaves))


def resigned(log: LogBuilder, number: int, **changes: Any) -> list[str]:
    leaves = [dict(leaf) for leaf in log.leaves]
    leaf = leaves[number - 1]
    for name, value in changes.items():
        if value is None:
            del leaf[name]
        else:
            leaf[name] = value
    return sign(leaves, log.signer, log.origin, list(log.openings.values()))


@pytest.mark.parametrize(
    ("version", "changes"),
    [
        (3, {"at": 1}),
        (3, {"at": 2**53 - 1}),  # the fault is in the next leaf, which is earlier
        (3, {"at": "1"}),
        (3, {"v": 1}),
        (3, {"v": 3}),
        (3, {"v": 0}),
        (3, {"v": True}),
        (3, {"version": 4}),
        (3, {"version": 2}),
        (3, {"table": "0" * 32}),
        (3, {"table": "A" * 32}),
        (3, {"type": "SeatStolen"}),
        (3, {"type": "TableOpened"}),
        (3, {"type": "RoundOpened"}),
        (3, {"commit": None}),
        (3, {"commit": X[:62]}),
        (3, {"more": 1}),
        (3, {"public": []}),
        (3, {"public": None}),
        (3, {"public": {}}),
        (3, {"public": {"seat": 2, "bot": False}}),
        (3, {"public": {"seat": 0, "bot": True}}),
        (3, {"public": {"seat": 2**32, "bot": True}}),
        (3, {"public": {"seat": True, "bot": True}}),
        (3, {"public": {"seat": "2", "bot": True}}),
        (3, {"public": {"seat": 2, "name": "Bea"}}),
        (3, {"public": {"seat": 2, "bot": True, "key": X[:62]}}),
        (3, {"public": {"seat": 2, "bot": True, "key": "A" * 64}}),
        (3, {"public": {"seat": 2, "bot": True, "more": 1}}),
        (1, {"type": "SeatTaken", "public": {"seat": 3}}),
    ],
    ids=repr,
)
def test_form_of_a_leaf(version: int, changes: dict[str, Any]) -> None:
    log = table()
    line = 4 if changes.get("at") == 2**53 - 1 else version
    if line == 4:
        log.sit(3)
    fault = verify(resigned(log, version, **changes)).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("form", line)


FIELDS: list[tuple[str, str, list[Any]]] = [
    ("TableOpened", "protocol", ["dealer/v2", ""]),
    ("TableOpened", "origin", ["cards.example", "a b/t/" + "0" * 32, 7]),
    ("TableOpened", "key", ["", "A" * 64]),
    ("TableOpened", "rules", [[], "free"]),
    ("RoundOpened", "round", [0, 2**32]),
    (
        "RoundOpened",
        "deck",
        [
            [],
            "As",
            ["As", "As"],
            ["As", "Kh", "10h"],
            ["??"],
            ["A s"],
            ['A"'],
            ["A\\"],
            ["é"],
            [7],
            ["A" * 17],
            [f"{n:04}" for n in range(1025)],
            [""],
        ],
    ),
    ("RoundOpened", "entropy", ["player", ""]),
    ("RoundOpened", "commit_ms", [2**32, "1"]),
    ("RoundOpened", "reveal_ms", [2**32]),
    ("RoundOpened", "commitment", [X[1:], X + "0"]),
    ("ShuffleStarted", "k", [2**32]),
    (
        "ShuffleStarted",
        "stack",
        [
            "Deck",
            "pile:",
            "pile:a b",
            "pile:" + "a" * 33,
            "hand:0",
            "hand:",
            "hand:01",
            "hand:4294967296",
            "hand:\u0661",
        ],
    ),
    ("ShuffleStarted", "n", [2**32]),
    ("ShuffleStarted", "algorithm", ["sideways"]),
    ("ShuffleStarted", "steps", [2**32]),
    ("EntropyCommitted", "seat", [0]),
    ("EntropyCommitted", "digest", ["00", X.upper() + "0"]),
    ("EntropyRevealed", "nonce", ["00", X + "00"]),
    ("CardsSwapped", "step", [2**32]),
    ("CardsSwapped", "i", [True]),
    ("DeckSealed", "first", [2**32]),
    ("DeckSealed", "slots", [X, [X[1:]], [7], [[X]]]),
    ("CardDrawn", "from", ["elsewhere"]),
    ("CardDrawn", "slot", ["0"]),
    ("CardShown", "card", ["??", "", "A" * 17, 7]),
    ("CardShown", "salt", ["00"]),
    ("RoundClosed", "secret", ["", "0", "0g", "AA"]),
]


@pytest.mark.parametrize(("type_", "member", "values"), FIELDS)
def test_form_of_public_members(type_: str, member: str, values: list[Any]) -> None:
    log = revealed()
    for step in log.plan([1, 2]):
        log.swap(*step)
    log.seal().draw(1).show(6).close_round()
    version = next(leaf["version"] for leaf in log.leaves if leaf["type"] == type_)
    public = log.leaves[version - 1]["public"]
    assert member in public
    without = {name: value for name, value in public.items() if name != member}
    publics = [{**public, member: value} for value in values]
    for changed in [*publics, without, {**public, "more": 1}]:
        assert encode(changed)
        fault = verify(resigned(log, version, public=changed)).fault
        assert fault is not None
        assert (fault.check, fault.line) == ("form", version), changed


@pytest.mark.parametrize(
    ("build", "committed"),
    [
        (lambda: dealt(), True),
        (lambda: dealt().move(6, "hand:1", "hand:2"), True),
        (lambda: dealt().move(6, "hand:1", "pile:p"), False),
        (lambda: dealt().show(6), False),
        (lambda: dealt().peek(5, 1), False),
        (lambda: dealt().cut(2), False),
        (lambda: swap_once(revealed()), True),
        (lambda: revealed(), False),
        (lambda: dealt().close_round(), False),
        (lambda: table(), True),
    ],
)
def test_which_leaves_have_a_commitment(build: Callable[[], LogBuilder], committed: bool) -> None:
    log = build()
    version = len(log.leaves)
    assert outcome(log) is None
    fault = verify(resigned(log, version, commit=None if committed else X)).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("form", version)
