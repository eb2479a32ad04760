"""Commands that open and close rounds and the table, and those of a shuffle.

Closing a round reveals its secret. A shuffle goes through start, digests, checkpoint C1, nonces,
swaps and seal; while it runs no card moves. When all seats have sent a digest, or the commit
deadline has passed, EntropyClosed ends the digests, and earlier if only players without a
connection have sent none; when all of them are opened, the tape is determined and the server
shuffles. A shuffle with a reveal missing at its deadline is voided and started again.
"""

from __future__ import annotations

from dealer import errors
from dealer.game import commands, events
from dealer.game.cards import check_deck
from dealer.game.decide.permission import idle_round, open_round, require_permission, require_seat
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.decide.selection import require_no_pass
from dealer.game.events import Event
from dealer.game.rules import ENTROPY
from dealer.game.shuffle import ALGORITHMS, Below, full, steps_of
from dealer.game.stacks import DECK, is_stack, seat_of
from dealer.game.state import Round, SeatHolder, Shuffle, Table
from dealer.game.tape import Tape

WAIT_MS_MIN = 100
WAIT_MS_MAX = 3_600_000


def open_next_round(command: commands.OpenRound, table: Table, house: RoundSecrets) -> list[Event]:
    """Open the next round; RoundOpen if one is open, BadRequest for a deck that is too large."""
    require_permission(table, command.actor, "open")
    if table.round is not None:
        raise errors.RoundOpen(f"Round {table.round.number} is open; close it before the next one.")
    check_deck(command.deck)
    if command.entropy not in ENTROPY:
        raise errors.BadRequest("A round's entropy is players or house.")
    for name, wait in (("commit_ms", command.commit_ms), ("reveal_ms", command.reveal_ms)):
        if not WAIT_MS_MIN <= wait <= WAIT_MS_MAX:
            raise errors.BadRequest(f"{name} is {WAIT_MS_MIN} to {WAIT_MS_MAX} milliseconds.")
    return [
        events.RoundOpened(
            round=len(table.round_versions) + 1,
            deck=command.deck,
            entropy=command.entropy,
            commit_ms=command.commit_ms,
            reveal_ms=command.reveal_ms,
            commitment=house.commitment,
        )
    ]


def close_round(command: commands.CloseRound, table: Table, house: RoundSecrets) -> list[Event]:
    """Close the open round, which no shuffle may be running in."""
    require_permission(table, command.actor, "close")
    return [events.RoundClosed(idle_round(table).number, house.secret)]


def close_table(command: commands.CloseTable, table: Table, house: RoundSecrets) -> list[Event]:
    """Close the table, and an open round with it, so that the whole game can be verified."""
    if not command.forced:
        require_permission(table, command.actor, "close")
    if table.round is None:
        return [events.TableClosed()]
    return [events.RoundClosed(idle_round(table).number, house.secret), events.TableClosed()]


ENTROPY_BYTES = 32


def start_shuffle(command: commands.StartShuffle, table: Table) -> list[Event]:
    """Start a shuffle of a stack; ShuffleRunning if one is running."""
    require_permission(table, command.actor, "shuffle")
    round_, n = _shufflable(table, command.stack)
    steps = full(n) if command.steps is None else command.steps
    if command.algorithm not in ALGORITHMS:
        raise errors.BadRequest("A shuffle's algorithm is backward or forward.")
    if not 0 <= steps <= full(n):
        raise errors.BadRequest(
            f"A shuffle of {errors.amount(n, 'card')} takes 0 to {errors.amount(full(n), 'step')}."
        )
    if command.algorithm == "forward" and steps != full(n):
        raise errors.BadRequest("A forward shuffle takes all its steps; a partial one is backward.")
    return _starting(table, round_, command.stack, n, command.algorithm, steps)


def start_for_draw(command: commands.DrawAtRandom, table: Table) -> list[Event]:
    """Start the partial shuffle that brings `count` random cards of the stack to its top."""
    require_seat(table, command.actor)
    require_permission(table, command.actor, "draw" if command.source == DECK else "pile")
    round_, n = _shufflable(table, command.source)
    if not 1 <= command.count <= n:
        raise errors.DeckEmpty(f"The stack has {errors.amount(n, 'card')} left; draw 1 to {n}.")
    return _starting(table, round_, command.source, n, "backward", min(command.count, full(n)))


def commit_entropy(command: commands.CommitEntropy, table: Table) -> list[Event]:
    """Accept a seat's digest for this shuffle, or for the next one while none is running."""
    seat = require_seat(table, command.actor)
    round_ = open_round(table)
    shuffle = round_.shuffle
    if len(command.digest) != ENTROPY_BYTES:
        raise errors.BadRequest("A digest has 32 bytes, as 64 hex digits.")
    if round_.entropy != "players":
        raise errors.EntropyOutOfTurn("This round uses only the house's entropy; send no digest.")
    if command.round != round_.number or command.k != round_.k:
        raise errors.EntropyOutOfTurn(
            f"Digests are accepted for round {round_.number}, shuffle {round_.k} only."
        )
    if seat in round_.withheld:
        raise errors.EntropyOutOfTurn(
            "This seat failed to reveal a nonce; its digests are not accepted in this round."
        )
    if shuffle is not None and shuffle.closed_version:
        raise errors.EntropyOutOfTurn(
            "The digests of this shuffle are closed; send one for the next shuffle."
        )
    given = round_.early_digests if shuffle is None else shuffle.digests
    if seat in given:
        raise errors.EntropyOutOfTurn("This seat has already sent its digest for this shuffle.")
    committed = events.EntropyCommitted(round_.number, round_.k, seat, command.digest)
    if shuffle is None:
        return [committed]
    return [committed, *_closed(table, round_, shuffle.k, {*given, seat})]


def reveal_entropy(
    command: commands.RevealEntropy, table: Table, house: RoundSecrets
) -> list[Event]:
    """Accept the nonce that opens the seat's digest; EntropyMismatch if it does not."""
    seat = require_seat(table, command.actor)
    round_, shuffle = _running(table)
    if not shuffle.closed_version:
        raise errors.EntropyOutOfTurn("Digests are still open; reveal after EntropyClosed.")
    if command.round != round_.number or command.k != shuffle.k:
        raise errors.EntropyOutOfTurn(
            f"Reveals are accepted for round {round_.number}, shuffle {shuffle.k} only."
        )
    if seat not in shuffle.digests or seat in shuffle.nonces:
        raise errors.EntropyOutOfTurn("No reveal is expected from this seat.")
    digest = house.player_digest(k=shuffle.k, seat=seat, nonce=command.nonce)
    if len(command.nonce) != ENTROPY_BYTES or digest != shuffle.digests[seat]:
        raise errors.EntropyMismatch("This nonce does not match the digest that this seat sent.")
    return [events.EntropyRevealed(round_.number, shuffle.k, seat, command.nonce)]


def check_deadlines(command: commands.CheckDeadlines, table: Table) -> list[Event]:
    """End the wait for digests, or void a shuffle, if its deadline has passed; else nothing."""
    round_ = table.round
    if round_ is None or round_.shuffle is None or (due := deadline(round_)) is None:
        return []
    if command.now < due:
        return []
    shuffle = round_.shuffle
    if not shuffle.closed_version:
        return [events.EntropyClosed(round_.number, shuffle.k)]
    if shuffle.ready():
        return []
    restarted = events.ShuffleStarted(
        round_.number, shuffle.k + 1, shuffle.stack, shuffle.n, shuffle.algorithm, shuffle.steps
    )
    excluded = round_.withheld | set(shuffle.missing())
    voided = events.ShuffleVoided(round_.number, shuffle.k)
    closed = _closed(table, round_, shuffle.k + 1, set(), excluded)
    return [voided, restarted, *closed]


def close_without_absent(command: commands.CloseEntropy, table: Table) -> list[Event]:
    """End the wait for digests early, if each player has sent one or is absent; else nothing.

    A player who has left, or taken the seat since, is not an absent one.
    """
    round_ = table.round
    shuffle = None if round_ is None else round_.shuffle
    if round_ is None or shuffle is None or shuffle.closed_version:
        return []
    if (round_.number, shuffle.k) != (command.round, command.k):
        return []
    # No verifier checks when the wait ended: its length is the house's word in any case. The wait
    # for reveals is never shortened, because a void shuffle can be a choice.
    absent = {seat for seat, since in command.absent if table.still_seated(SeatHolder(seat, since))}
    return _closed(table, round_, shuffle.k, set(shuffle.digests), round_.withheld | absent)


def finish_shuffle(
    command: commands.FinishShuffle, table: Table, house: RoundSecrets
) -> list[Event]:
    """Swap and seal the stack when all nonces are revealed."""
    round_, shuffle = _running(table)
    if not shuffle.ready():
        raise errors.NoShuffle("This shuffle still waits for digests or reveals.")
    order = [round_.face(card) or "" for card in round_.cards(shuffle.stack)]
    tape = Tape(
        secret=house.secret, nonces=shuffle.entropy(), root=command.root, k=shuffle.k, n=shuffle.n
    )
    below: Below = tape.below
    if command.deck is not None:
        below = command.deck.below(order, algorithm=shuffle.algorithm, k=shuffle.k)
    decided: list[Event] = []
    swapped = events.CardsSwapped  # one lookup for all swaps
    number, k = round_.number, shuffle.k
    steps = steps_of(shuffle.algorithm, n=shuffle.n, steps=shuffle.steps, below=below)
    for step, i, j in steps:
        order[i], order[j] = order[j], order[i]
        decided.append(swapped(number, k, step, i, j))
    first = len(round_.faces)
    slots = tuple(house.slot_commitments(first, order))
    decided.append(events.DeckSealed(number, k, first, slots))
    return decided


def deadline(round_: Round) -> int | None:
    """When the running shuffle stops waiting, in milliseconds; None if none is waiting."""
    shuffle = round_.shuffle
    if shuffle is None or shuffle.ready():
        return None
    if shuffle.closed_version:
        return shuffle.closed_at + round_.reveal_ms
    return shuffle.started_at + round_.commit_ms


def close_if_complete(table: Table, *, left: int) -> list[Event]:
    """EntropyClosed, if the digest of the seat that leaves was the last one missing."""
    round_ = table.round
    if round_ is None or round_.shuffle is None or round_.shuffle.closed_version:
        return []
    given = set(round_.shuffle.digests)
    return _closed(table, round_, round_.shuffle.k, given, round_.withheld | {left})


def _shufflable(table: Table, stack: str) -> tuple[Round, int]:
    """The open round and the number of cards in the stack to be shuffled."""
    round_ = idle_round(table)
    if not is_stack(stack) or seat_of(stack) is not None:
        raise errors.BadRequest("Name deck or pile:<name>; a hand cannot be shuffled.")
    require_no_pass(round_, stack)
    n = len(round_.cards(stack))
    if n == 0:
        raise errors.DeckEmpty("This stack has no card to shuffle.")
    return round_, n


def _starting(
    table: Table, round_: Round, stack: str, n: int, algorithm: str, steps: int
) -> list[Event]:
    started = events.ShuffleStarted(round_.number, round_.k, stack, n, algorithm, steps)
    return [started, *_closed(table, round_, round_.k, set(round_.early_digests))]


def _closed(
    table: Table, round_: Round, k: int, given: set[int], excluded: set[int] | None = None
) -> list[Event]:
    """EntropyClosed for shuffle `k`, unless a digest of a taken seat is missing.

    No digest is missing from `given` and `excluded` seats; by default those are excluded that
    failed to reveal in this round.
    """
    awaited = set(table.seats) - given - (round_.withheld if excluded is None else excluded)
    if round_.entropy == "players" and awaited:
        return []
    return [events.EntropyClosed(round_.number, k)]


def _running(table: Table) -> tuple[Round, Shuffle]:
    round_ = open_round(table)
    if round_.shuffle is None:
        raise errors.NoShuffle("No shuffle is running at this table.")
    return round_, round_.shuffle
