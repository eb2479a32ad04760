"""Tables whose events the game decides; `Game.log` writes them to a log, all or up to a version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from dealer.errors import Refused
from dealer.eventlog import EventRecord
from dealer.eventlog.keys import NONCE_BYTES
from dealer.game.commands import (
    Actor,
    CheckDeadlines,
    CloseRound,
    Command,
    CommitEntropy,
    Cut,
    Deal,
    DealtPile,
    Draw,
    FinishShuffle,
    LeaveSeat,
    Move,
    OpenRound,
    OpenTable,
    Pass,
    RevealEntropy,
    Show,
    StartShuffle,
    TakeBack,
    TakeSeat,
    Where,
)
from dealer.game.decide import NoRoundSecrets, decide
from dealer.game.events import Event
from dealer.game.state import Round, Table, evolve
from dealer.proof.round_keys import player_digest
from dealer.proof.tree import Tree
from dealer.service.commands.executor import encode
from dealer.service.tables.round_secret import RoundSecret
from tests.harness.postgres import Blocking
from tests.projector.databases import AnyConnection

HOST = Actor(host=True)
CODES = tuple("abcdefgh")


def digest(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


class Game:
    """One table: `events` with their times, and `rows` as in the log, hidden parts encrypted.

    `logged` is how many of them are in the log.
    """

    def __init__(
        self, name: str = "a", *, rules: dict[str, Any] | None = None, now: int = 1_700_000_000_000
    ) -> None:
        self.id = digest(name)[:16]
        self.table = Table()
        self.tree = Tree()
        self.round_secrets: RoundSecret | NoRoundSecrets = NoRoundSecrets()
        self.secrets: dict[int, bytes] = {}
        self.events: list[tuple[Event, int]] = []
        self.rows: list[EventRecord] = []
        self.logged = 0
        self.now = now
        given = {"name": f"table {name}"} | (rules or {})
        self.do(OpenTable(f"house/t/{self.id.hex()}", digest("key"), given))

    @property
    def round(self) -> Round:
        assert self.table.round is not None
        return self.table.round

    def do(self, command: Command) -> list[Event]:
        events = decide(command, self.table, self.round_secrets)
        self.now += 7
        table, at, tree, secret = self.id.hex(), self.now, self.tree, self.round_secrets
        for event in events:
            version, nonce = self.table.version + 1, bytes(NONCE_BYTES)
            self.rows.append(encode(event, table, version, at, tree, secret, nonce))
            evolve(self.table, event, self.now)
            self.events.append((event, self.now))
        if isinstance(command, CloseRound):
            self.round_secrets = NoRoundSecrets()
        return events

    def tries(self, command: Command) -> None:
        try:
            self.do(command)
        except Refused:
            return

    def sit(self, *names: str) -> Game:
        for name in names:
            self.do(TakeSeat(name, key=digest(name) if name == "Ada" else None))
        return self

    def open_round(
        self, *, deck: Sequence[str] = CODES, entropy: str = "house", shuffled: bool = True
    ) -> Game:
        number = len(self.table.round_versions) + 1
        secret = self.secrets[number] = digest(self.id, number) * 2
        self.round_secrets = RoundSecret(
            table=self.id, round=number, secret=secret, wrapped=b"wrapped"
        )
        self.do(OpenRound(HOST, tuple(deck), entropy, 1_000, 1_000))
        if shuffled:
            self.shuffle()
        return self

    def shuffle(
        self, stack: str = "deck", *, algorithm: str = "backward", steps: int | None = None
    ) -> None:
        self.do(StartShuffle(HOST, stack, algorithm, steps))
        self.record_results()

    def record_results(self, *, silent: Sequence[int] = ()) -> None:
        """Every seat gives its entropy, silent ones only a digest, until the shuffle ends."""
        while self.table.round is not None and (shuffle := self.table.round.shuffle) is not None:
            number, k = self.table.round.number, shuffle.k
            if not shuffle.closed_version:
                self.commit()
                if shuffle.closed_version == 0:
                    self.now += 1_000
                    self.do(CheckDeadlines(self.now))
                continue
            for seat in shuffle.missing():
                if seat in self.table.seats and seat not in silent:
                    nonce = digest(number, k, seat)
                    self.do(RevealEntropy(Actor(seat=seat), number, k, nonce))
            if shuffle.ready():
                self.do(FinishShuffle(digest("root", self.table.version)))
            else:
                self.now += 1_000
                self.do(CheckDeadlines(self.now))
                silent = ()

    def commit(self, *, silent: Sequence[int] = ()) -> None:
        round_ = self.round
        for seat in list(self.table.seats):
            if seat not in silent:
                own = player_digest(
                    table=self.id, round=round_.number, k=round_.k, seat=seat,
                    nonce=digest(round_.number, round_.k, seat),
                )  # fmt: skip
                command = CommitEntropy(Actor(seat=seat), round_.number, round_.k, own)
                self.tries(command)

    def close_round(self) -> Game:
        self.do(CloseRound(HOST))
        return self

    # Writing to the log

    def log(self, connection: AnyConnection, *, upto: int | None = None) -> None:
        """Write the rows that are not in the log yet, up to version `upto`, in one transaction."""
        last = len(self.rows) if upto is None else upto
        execute = connection.exec_driver_sql
        execute("BEGIN IMMEDIATE")
        if not self.logged:
            column = "id" if isinstance(connection, Blocking) else "table_id"
            execute(
                f"INSERT INTO stream ({column}, version, projected) VALUES (?, 0, 0)", (self.id,)
            )
            if isinstance(connection, Blocking):
                connection.numbers[self.id] = len(connection.numbers) + 1
        (number,) = execute("SELECT id FROM stream WHERE table_id = ?", (self.id,)).one()
        for row in self.rows[self.logged : last]:
            execute(
                "INSERT INTO event (stream, version, type, schema, at, public, commitment, hidden,"
                " command, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (number, *row.columns_as_read()),
            )
        execute("UPDATE stream SET version = ? WHERE id = ?", (last, number))
        execute("COMMIT")
        self.logged = last


def short_game(name: str = "a") -> Game:
    """Two players, a shuffle, a deal, a draw, a discard, a show, and the end of the round."""
    game = Game(name).sit("Ada", "Bob").open_round()
    game.do(Deal(HOST, 2))
    game.do(Draw(Actor(seat=2)))
    hand = game.round.cards("hand:1")
    game.do(Show(Actor(seat=1), "hand:1", (hand[0],)))
    game.do(Move(Actor(seat=1), "discard", "hand:1", "pile:discard", (hand[1],)))
    game.do(Move(Actor(seat=2), "play", "hand:2", "pile:table", count=1, face="up"))
    return game.close_round()


def random_step(game: Game, choice: int) -> None:
    """Do one of the possible next steps; nothing if the game refuses it."""
    number, rest = choice % 19, choice // 19
    seat = Actor(seat=1 + rest % 3)
    own = f"hand:{seat.seat}"
    here = ("deck", own, "pile:x", own, "deck")[rest % 5]
    there = ("pile:x", "deck", own, "pile:burn", "hand:1")[rest // 5 % 5]
    places: tuple[Where, ...] = ("top", "bottom", rest % 4)
    if number == 0:
        game.tries(TakeSeat(f"player {rest % 7}", 1 + rest % 3))
    elif number == 1:
        game.tries(LeaveSeat(seat))
    elif number in (2, 3):
        if game.table.round is None:
            entropy = ("house", "players")[rest % 2]
            game.open_round(deck=CODES[: 1 + rest % 8], entropy=entropy, shuffled=rest % 4 > 0)
    elif number == 4:
        if rest % 4 == 0:
            game.tries(CloseRound(HOST))
    elif number in (5, 6):
        steps = None if rest % 3 else rest % 4
        stack = ("deck", "pile:x")[rest % 5 == 0]
        game.tries(StartShuffle(HOST, stack, ("backward", "forward")[rest % 4 == 3], steps))
    elif number == 7 and game.table.round is not None:
        game.commit(silent=(1,) if rest % 3 == 0 else ())
    elif number in (8, 9):
        game.record_results(silent=(1,) if rest % 4 == 0 else ())
    elif number in (10, 11, 12):
        end: Literal["top", "bottom"] = "bottom" if rest % 2 else "top"
        game.tries(Draw(seat, 1 + rest % 2, ("deck", "pile:x")[rest % 6 == 0], end))
    elif number == 13:
        piles = (DealtPile("pile:x", 1, "up"),) if rest % 3 == 0 else ()
        game.tries(Deal(HOST, 1, piles=piles))
    elif number == 14 and rest % 4 == 0:
        held = [] if game.table.round is None else game.round.cards(own)
        game.tries(Pass(seat, tuple(held[:2]) or None, 1 + (rest + 1) % 3 if held else None))
    elif number == 15 and rest % 4 == 0:
        game.tries(Move(seat, "pile", here, there, where=places[rest % 3], whole=True))
    elif number == 16 and rest % 3 == 0:
        game.tries(TakeBack(seat))
    elif number in (14, 15, 16):
        face: Literal["up", "down"] = "up" if rest % 2 else "down"
        game.tries(Move(seat, "pile", here, there, count=1, where=places[rest % 3], face=face))
    elif number == 17:
        game.tries(Show(seat, here, to=None if rest % 2 else 1 + rest // 2 % 2))
    elif number == 18:
        game.tries(Cut(seat, rest % 3, ("deck", "pile:x")[rest % 4 == 3]))
