"""Random logs of valid games, and of games with one fault that the house commits to and signs.

The fault is made where the event is written, so that every later commitment, root and tape is
consistent with it: only the check for this kind of fault can find it.
"""

from __future__ import annotations

from random import Random
from typing import Any, Self

from tests.proof.log_builder import CARDS, LogBuilder

SEATS = (1, 2, 3, 10, 2**32 - 1)
PILES = ("pile:burn", "pile:discard", 'pile:"\\')
NOTES = (
    ("chat", "hello\u2028"),
    ("score", "1 7"),
    ("readmit", ""),
    ("take_back", "3-4"),
    ("seat_move", "2-3"),
    ("program", "dealer 1"),
)
DECKS = (CARDS, ("As",), ("T1", "T2"), tuple(f"{n:03}" for n in range(40)))


class FaultyLogBuilder(LogBuilder):
    """Makes the `at`-th event faulty; none, if `at` is 0."""

    def __init__(self, chance: Random, *, at: int) -> None:
        super().__init__(table=chance.randbytes(16), at=chance.randrange(10**13))
        self.chance = chance
        self.fault_at = at
        self.count = 0
        self.held: tuple[str, Any, dict[str, Any]] | None = None

    def append(self, type_: str, hidden: Any = None, **public: Any) -> Self:
        self.count += 1
        held, self.held = self.held, None
        if self.count == self.fault_at:
            self._append_faulty(type_, hidden, public)
        else:
            super().append(type_, hidden, **public)
        if held is not None:
            super().append(held[0], held[1], **held[2])
        return self

    def _append_faulty(self, type_: str, hidden: Any, public: dict[str, Any]) -> None:
        kind = self.chance.choice(("tamper",) * 6 + ("hidden", "hidden", "drop", "twice", "later"))
        if kind == "tamper" and public:
            name = self.chance.choice(sorted(public))
            public[name] = other(self.chance, name, public[name])
        elif kind == "hidden" and hidden is not None:
            name = self.chance.choice([*hidden, "x"])
            hidden = {**hidden, name: other(self.chance, name, hidden.get(name, 0))}
        elif kind == "drop":
            return
        elif kind == "later":
            self.held = type_, hidden, public
            return
        elif kind == "twice":
            super().append(type_, hidden, **public)
        super().append(type_, hidden, **public)


def other(chance: Random, name: str, value: Any) -> Any:
    """Another plausible value of the same type."""
    if type(value) is int:
        near = (value + 1, max(value - 1, 0), 0, 1, value + 2, 2**32 - 1, chance.randrange(8))
        return chance.choice(near)
    if name in ("stack", "source", "to"):
        return chance.choice(("deck", *PILES, "hand:1", "hand:2", "hand:3", "hand:9"))
    if name == "card":
        return chance.choice(CARDS)
    if name in ("entropy", "algorithm"):
        pairs = ("players", "house"), ("backward", "forward")
        return next(pair[1 - pair.index(value)] for pair in pairs if value in pair)
    if type(value) is str:
        at = chance.randrange(len(value)) if value else 0
        return f"{value[:at]}{chance.choice('0123456789abcdef')}{value[at + 1 :]}"
    if type(value) is list and value:
        at, to = chance.randrange(len(value)), chance.randrange(len(value))
        changed = list(value)
        changed[at], changed[to] = changed[to], changed[at]
        exchanged = [*value[:at], other(chance, "", value[at]), *value[at + 1 :]]
        return chance.choice((changed, value[:-1], value + value[-1:], exchanged))
    return {"other": True}


class Game:
    """Plays random legal events, one at a time."""

    def __init__(self, log: LogBuilder, chance: Random) -> None:
        self.log, self.chance = log, chance
        self.seats: set[int] = set()
        self.phase = "idle"
        self.entropy = "house"
        self.digests: set[int] = set()
        self.opened: set[int] = set()
        self.withheld: set[int] = set()
        self.drawable: set[int] = set()

    def step(self) -> None:
        moves = {
            "idle": ("sit", "sit", "leave", "note", "round", "round"),
            "still": (
                "sit",
                "leave",
                "note",
                "transfer",
                "commit",
                "start",
                "start",
                "draw",
                "draw",
                "draw",
                "move",
                "move",
                "hand",
                "show",
                "peek",
                "cut",
                "end",
            ),
            "committing": ("sit", "leave", "commit", "commit", "close"),
            "closed": ("sit", "leave", "reveal", "reveal", "reveal", "swap", "swap", "void"),
        }[self.phase]
        getattr(self, self.chance.choice(moves))()

    def one(self, things: Any) -> Any:
        return self.chance.choice(sorted(things))

    def sit(self) -> None:
        free = set(SEATS) - self.seats
        if free:
            seat = self.one(free)
            name = self.chance.choice(("Ada", "", "🂡 é"))
            self.log.sit(seat, name, keyed=seat != 3, bot=seat == 10)
            self.seats.add(seat)

    def note(self) -> None:
        seat = self.one({0, *self.seats})
        self.log.note(seat, *self.chance.choice(NOTES))

    def transfer(self) -> None:
        if self.seats:
            self.log.transfer(self.one(self.seats))

    def leave(self) -> None:
        if self.seats and self.chance.random() < 0.3:
            seat = self.one(self.seats)
            if self.chance.random() < 0.5:
                self.log.append("SeatLeft", seat=seat)
            else:
                self.log.vacate(seat, reason=self.chance.choice(("", "away")))
            self.seats.remove(seat)
            if self.phase != "closed":
                self.digests.discard(seat)

    def round(self) -> None:
        self.entropy = self.chance.choice(("players", "players", "house"))
        self.log.open_round(self.chance.choice(DECKS), self.entropy)
        self.phase, self.withheld, self.drawable = "still", set(), set()
        self.digests, self.opened = set(), set()

    def end(self) -> None:
        if self.chance.random() < 0.2:
            self.log.close_round()
            self.phase = "idle"

    def finish(self) -> None:
        """Close the round in any phase."""
        if self.phase == "committing":
            self.close()
        if self.phase == "closed":
            self.void()
        if self.phase == "closed":
            self.swap()
        if self.phase == "still":
            self.log.close_round()
            self.phase = "idle"

    def commit(self) -> None:
        able = self.seats - self.digests - self.withheld
        if self.entropy == "players" and able:
            seat = self.one(able)
            self.log.commit(seat)
            self.digests.add(seat)

    def start(self) -> None:
        stacks = [stack for stack in self.log.stacks if not stack.startswith("hand:")]
        algorithm, steps = self.chance.choice((("backward", None), ("forward", None), ("", 1)))
        stack = self.chance.choice(stacks)
        if steps is not None:
            steps = self.chance.randrange(max(len(self.log.stacks[stack]), 1))
        self.log.start(stack=stack, algorithm=algorithm or "backward", steps=steps)
        self.phase = "committing"

    def close(self) -> None:
        self.log.close()
        cosigners = [seat for seat in self.seats if seat != 3 and self.chance.random() < 0.3]
        self.log.cosigned[len(self.log.leaves)] = cosigners
        self.phase = "closed"

    def reveal(self) -> None:
        missing = self.digests - self.opened
        if missing:
            seat = self.one(missing)
            self.log.reveal(seat)
            self.opened.add(seat)

    def void(self) -> None:
        missing = self.digests - self.opened
        if missing:
            self.log.void()
            self.withheld |= missing
            self.digests, self.opened, self.phase = set(), set(), "still"

    def swap(self) -> None:
        if self.digests != self.opened:
            return
        log = self.log
        cards = log.stacks[log.stack]
        mixed = all(card in self.drawable for card in cards)
        for step in log.plan(sorted(self.opened)):
            log.swap(*step)
        log.seal()
        whole = mixed or log.steps >= log.n - 1
        self.drawable |= set(cards[0 if whole else log.n - log.steps :])
        self.digests, self.opened, self.phase = set(), set(), "still"

    def _slot(self, wanted: Any) -> tuple[str, int] | None:
        sealed = [
            (stack, card)
            for stack, cards in sorted(self.log.stacks.items())
            for card in cards
            if card >= 0 and wanted(stack, card)
        ]
        return self.chance.choice(sealed) if sealed else None

    def draw(self) -> None:
        found = self._slot(lambda stack, c: c in self.drawable and not stack.startswith("hand:"))
        if found and self.seats:
            self.log.draw(self.one(self.seats), found[1], found[0])

    def move(self) -> None:
        self._move(self.chance.choice(("deck", *PILES)), lambda stack, card: True)

    def hand(self) -> None:
        if self.seats:
            self._move(f"hand:{self.one(self.seats)}", lambda stack, card: card in self.drawable)

    def _move(self, to: str, wanted: Any) -> None:
        found = self._slot(wanted)
        if found:
            room = len(self.log.stacks.get(to, ())) - (found[0] == to)
            self.log.move(found[1], found[0], to, self.chance.randint(0, room))

    def show(self) -> None:
        found = self._slot(lambda stack, card: True)
        if found:
            self.log.show(found[1])

    def peek(self) -> None:
        found = self._slot(lambda stack, card: True)
        if found and self.seats:
            self.log.peek(found[1], self.one(self.seats))

    def cut(self) -> None:
        stack = self.one(name for name in self.log.stacks if not name.startswith("hand:"))
        self.log.cut(self.chance.randint(0, len(self.log.stacks[stack])), stack)


def valid_log(seed: object) -> LogBuilder:
    """A log of a few events to a few hundred, which depends only on the seed."""
    return _generated(seed, fault_at=0)


def faulty_log(seed: object) -> LogBuilder:
    """A log with one fault, equally often in each type of event."""
    types = [leaf["type"] for leaf in valid_log(seed).leaves]
    chance = Random(f"fault {seed}")
    type_ = chance.choice(sorted(set(types)))
    return _generated(
        seed, fault_at=chance.choice([n for n, t in enumerate(types, 1) if t == type_])
    )


def _generated(seed: object, *, fault_at: int) -> LogBuilder:
    chance = Random(f"game {seed}")
    log = FaultyLogBuilder(chance, at=fault_at)
    log.open_table(named=chance.choice((None, "", "Friday")), rules=chance.randrange(9))
    game = Game(log, chance)
    for _ in range(chance.randrange(5, 60)):
        game.step()
    if chance.random() < 0.8:
        game.finish()
    if game.phase == "idle" and chance.random() < 0.5:
        log.close_table(cosign=[seat for seat in game.seats if seat != 3])
    return log
