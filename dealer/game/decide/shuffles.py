"""A shuffle from its start to its seal: digests, C1, nonces, swaps, slots.

Until the seal, or the void, nothing else happens to a card. Once all seats have committed, or the
time is up, the digests are closed; once all of these are opened, the tape is fixed, and the house
only carries it out.
"""

from __future__ import annotations

from dealer.errors import (
    BadRequest,
    DeckEmpty,
    EntropyMismatch,
    EntropyOutOfTurn,
    NoShuffle,
)
from dealer.game.commands import (
    CommitEntropy,
    DrawAtRandom,
    FinishShuffle,
    PassTime,
    RevealEntropy,
    StartShuffle,
)
from dealer.game.decide.house import House
from dealer.game.decide.permission import open_round, permit, seated, still_round
from dealer.game.events import (
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    Event,
    ShuffleStarted,
    ShuffleVoided,
)
from dealer.game.shuffle import ALGORITHMS, full, steps_of
from dealer.game.stacks import DECK, is_stack, seat_of
from dealer.game.state import Round, Shuffle, Table
from dealer.game.tape import Tape

ENTROPY_BYTES = 32


def start(command: StartShuffle, table: Table) -> list[Event]:
    permit(table, command.actor, "shuffle")
    round_, n = _shufflable(table, command.stack)
    steps = full(n) if command.steps is None else command.steps
    if command.algorithm not in ALGORITHMS:
        raise BadRequest("A shuffle's algorithm is backward or forward.")
    if not 0 <= steps <= full(n):
        raise BadRequest(f"A shuffle of {n} cards takes 0 to {full(n)} steps.")
    if command.algorithm == "forward" and steps != full(n):
        raise BadRequest("A forward shuffle takes all its steps; a partial one is backward.")
    return _started(table, round_, command.stack, n, command.algorithm, steps)


def start_for_draw(command: DrawAtRandom, table: Table) -> list[Event]:
    """As many steps as bring that many cards, from anywhere in the stack, to its top."""
    seated(table, command.actor)
    permit(table, command.actor, "draw" if command.source == DECK else "pile")
    round_, n = _shufflable(table, command.source)
    if not 1 <= command.count <= n:
        raise DeckEmpty(f"{n} cards are left there; draw 1 to {n}.")
    return _started(table, round_, command.source, n, "backward", min(command.count, full(n)))


def commit(command: CommitEntropy, table: Table) -> list[Event]:
    seat = seated(table, command.actor)
    round_ = open_round(table)
    shuffle = round_.shuffle
    if len(command.digest) != ENTROPY_BYTES:
        raise BadRequest("A digest has 32 bytes, as 64 hex digits.")
    if round_.entropy != "players":
        raise EntropyOutOfTurn("This round's shuffles take the house's entropy alone.")
    if command.round != round_.number or command.k != round_.k:
        raise EntropyOutOfTurn(
            f"Entropy is taken for round {round_.number}, shuffle {round_.k}, and no other."
        )
    if seat in round_.withheld:
        raise EntropyOutOfTurn("This seat withheld a reveal and brings no more in this round.")
    if shuffle is not None and shuffle.closed_version:
        raise EntropyOutOfTurn("The digests of this shuffle are closed; send one for the next.")
    given = round_.ahead if shuffle is None else shuffle.digests
    if seat in given:
        raise EntropyOutOfTurn("This seat has sent its digest for this shuffle.")
    committed = EntropyCommitted(round_.number, round_.k, seat, command.digest)
    if shuffle is None:
        return [committed]
    return [committed, *_closed(table, round_, shuffle.k, {*given, seat})]


def reveal(command: RevealEntropy, table: Table, house: House) -> list[Event]:
    seat = seated(table, command.actor)
    round_, shuffle = _running(table)
    if not shuffle.closed_version:
        raise EntropyOutOfTurn("Digests are still open: reveal when EntropyClosed has come.")
    if command.round != round_.number or command.k != shuffle.k:
        raise EntropyOutOfTurn(
            f"Reveals are taken for round {round_.number}, shuffle {shuffle.k}, and no other."
        )
    if seat not in shuffle.digests or seat in shuffle.nonces:
        raise EntropyOutOfTurn("No reveal is awaited from this seat.")
    digest = house.player_digest(k=shuffle.k, seat=seat, nonce=command.nonce)
    if len(command.nonce) != ENTROPY_BYTES or digest != shuffle.digests[seat]:
        raise EntropyMismatch("These bytes do not open the digest that this seat sent.")
    return [EntropyRevealed(round_.number, shuffle.k, seat, command.nonce)]


def pass_time(command: PassTime, table: Table) -> list[Event]:
    """Nothing, if nobody is late."""
    round_ = table.round
    if round_ is None or round_.shuffle is None or (due := deadline(round_)) is None:
        return []
    if command.now < due:
        return []
    shuffle = round_.shuffle
    if not shuffle.closed_version:
        return [EntropyClosed(round_.number, shuffle.k)]
    if shuffle.ready():
        return []
    again = ShuffleStarted(
        round_.number, shuffle.k + 1, shuffle.stack, shuffle.n, shuffle.algorithm, shuffle.steps
    )
    excluded = round_.withheld | set(shuffle.missing())
    voided = ShuffleVoided(round_.number, shuffle.k)
    closed = _closed(table, round_, shuffle.k + 1, set(), excluded)
    return [voided, again, *closed]


def finish(command: FinishShuffle, table: Table, house: House) -> list[Event]:
    round_, shuffle = _running(table)
    if not shuffle.ready():
        raise NoShuffle("Entropy for this shuffle is still awaited.")
    tape = Tape(
        secret=house.secret,
        nonces=shuffle.entropy(),
        root=command.root,
        k=shuffle.k,
        n=shuffle.n,
    )
    order = [round_.face(card) or "" for card in round_.cards(shuffle.stack)]
    events: list[Event] = []
    number, k = round_.number, shuffle.k
    steps = steps_of(shuffle.algorithm, n=shuffle.n, steps=shuffle.steps, below=tape.below)
    for step, i, j in steps:
        order[i], order[j] = order[j], order[i]
        events.append(CardsSwapped(number, k, step, i, j))
    first = len(round_.faces)
    events.append(DeckSealed(number, k, first, tuple(house.slot_commitments(first, order))))
    return events


def deadline(round_: Round) -> int | None:
    """When, in milliseconds, a running shuffle stops waiting; None if none waits."""
    shuffle = round_.shuffle
    if shuffle is None or shuffle.ready():
        return None
    if shuffle.closed_version:
        return shuffle.closed_at + round_.reveal_ms
    return shuffle.started_at + round_.commit_ms


def close_if_complete(table: Table, *, left: int) -> list[Event]:
    """The digests' end, if seat `left` was the last one that they waited for."""
    round_ = table.round
    if round_ is None or round_.shuffle is None or round_.shuffle.closed_version:
        return []
    given = set(round_.shuffle.digests)
    return _closed(table, round_, round_.shuffle.k, given, round_.withheld | {left})


def _shufflable(table: Table, stack: str) -> tuple[Round, int]:
    """The open round, and how many cards are in the stack that is to be shuffled."""
    round_ = still_round(table)
    if not is_stack(stack) or seat_of(stack) is not None:
        raise BadRequest("What can be shuffled is deck or pile:<name>; no hand can.")
    n = len(round_.cards(stack))
    if n == 0:
        raise DeckEmpty("There is no card to shuffle there.")
    return round_, n


def _started(
    table: Table, round_: Round, stack: str, n: int, algorithm: str, steps: int
) -> list[Event]:
    started = ShuffleStarted(round_.number, round_.k, stack, n, algorithm, steps)
    return [started, *_closed(table, round_, round_.k, set(round_.ahead))]


def _closed(
    table: Table,
    round_: Round,
    k: int,
    given: set[int],
    excluded: set[int] | None = None,
) -> list[Event]:
    """The end of the digests of shuffle `k`, unless a seat but those given and excluded owes one.

    Excluded are the seats that withheld in this round, if no others are named.
    """
    awaited = set(table.seats) - given - (round_.withheld if excluded is None else excluded)
    if round_.entropy == "players" and awaited:
        return []
    return [EntropyClosed(round_.number, k)]


def _running(table: Table) -> tuple[Round, Shuffle]:
    round_ = open_round(table)
    if round_.shuffle is None:
        raise NoShuffle("No shuffle is running at this table.")
    return round_, round_.shuffle
