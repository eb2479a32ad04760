"""Whether what the house says happened can have happened: the rules of the log, seen from a seat.

`check` compares an event with the table before it, as far as this reader may know; who was allowed
to make a move is between that player and the house, so it is no matter here.
"""

from __future__ import annotations

from typing import NoReturn, assert_never

from dealer.errors import BadRequest, HouseCheated
from dealer.game.cards import check_deck
from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardPeeked,
    CardShown,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    Event,
    RoundClosed,
    RoundOpened,
    SeatLeft,
    SeatTaken,
    ShuffleStarted,
    ShuffleVoided,
    StackCut,
    TableClosed,
    TableOpened,
)
from dealer.game.shuffle import ALGORITHMS, full
from dealer.game.stacks import SEAT_MAX, is_stack, seat_of
from dealer.game.state import COMMITMENT_BYTES, Round, Shuffle, Table

NUMBER_MAX = 2**32 - 1


def check(table: Table, event: Event, *, swaps: int) -> None:
    """Raise HouseCheated unless `event` can follow; `swaps` counts those of a running shuffle."""
    if table.closed:
        _fail("Something happened at a table that was closed for good.")
    if (table.version == 0) != isinstance(event, TableOpened):
        _fail("A log begins with the opening of its table, and no table opens twice.")
    match event:
        case TableOpened():
            pass
        case SeatTaken(seat):
            _demand(1 <= seat <= SEAT_MAX and seat not in table.seats, "A taken seat was taken.")
        case SeatLeft(seat):
            _demand(seat in table.seats, "Somebody left a seat in which nobody sat.")
        case RoundOpened():
            _check_opening(table, event)
        case TableClosed():
            _demand(table.round is None, "The table was closed over an open round.")
        case _:
            round_ = table.round
            if round_ is None or event.round != round_.number:
                _fail("Something happened in a round that is not open.")
            _check_in_round(table, round_, event, swaps)


InRound = (
    ShuffleStarted
    | EntropyCommitted
    | EntropyClosed
    | ShuffleVoided
    | EntropyRevealed
    | CardsSwapped
    | DeckSealed
    | CardDrawn
    | CardMoved
    | CardShown
    | CardPeeked
    | StackCut
    | RoundClosed
)


def _check_in_round(table: Table, round_: Round, event: InRound, swaps: int) -> None:
    match event:
        case ShuffleStarted():
            _check_start(round_, event)
        case EntropyCommitted(_, k, seat, digest):
            _check_digest(table, round_, k, seat, digest)
        case EntropyClosed(_, k):
            shuffle = _running(round_, k)
            _demand(not shuffle.closed_version, "The digests of a shuffle were closed twice.")
        case EntropyRevealed(_, k, seat, nonce):
            shuffle = _running(round_, k)
            awaited = shuffle.closed_version and seat in shuffle.missing() and len(nonce) == 32
            _demand(bool(awaited), "A reveal came from a seat that had none to make.")
        case ShuffleVoided(_, k):
            shuffle = _running(round_, k)
            voidable = shuffle.closed_version and shuffle.missing()
            _demand(bool(voidable), "A shuffle was voided though nobody had withheld a reveal.")
        case CardsSwapped():
            _check_swap(round_, event, swaps)
        case DeckSealed():
            _check_seal(round_, event, swaps)
        case RoundClosed():
            _still(round_)
        case CardDrawn(_, seat, source, slot):
            _still(round_)
            _demand(seat in table.seats, "A card was drawn by a seat in which nobody sits.")
            _demand(is_stack(source) and seat_of(source) is None, "Nobody draws from a hand.")
            _check_lies(round_, slot, source)
            _demand(round_.mixed([slot]), "A card was drawn that no shuffle had reached.")
        case CardMoved():
            _check_move(round_, event)
        case CardShown(_, slot, card) | CardPeeked(_, slot, _, card):
            _still(round_)
            lies = 0 <= slot < len(round_.faces) and round_.stack_of(slot) is not None
            _demand(lies, "A card was shown that does not lie on the table.")
            _demand(card is None or card in round_.opened, "A card was shown that is not in play.")
        case StackCut(_, stack, place):
            _still(round_)
            size = len(round_.cards(stack))
            legal = is_stack(stack) and seat_of(stack) is None and 0 <= place <= size
            _demand(legal, "A stack was cut where it has no place.")
        case _:
            assert_never(event)


def _check_opening(table: Table, event: RoundOpened) -> None:
    _demand(table.round is None, "A round was opened before the last one was closed.")
    _demand(event.round == len(table.openings) + 1, "The rounds are not counted one by one.")
    _demand(event.entropy in ("players", "house"), "A round has entropy that nobody knows.")
    _demand(len(event.commitment) == 32, "A round was opened without a commitment.")
    _demand(_number(event.commit_ms) and _number(event.reveal_ms), "A round waits no known time.")
    try:
        check_deck(event.deck)
    except BadRequest as error:
        raise HouseCheated(f"A round was opened with something that is no deck. {error}") from error


def _check_start(round_: Round, event: ShuffleStarted) -> None:
    _still(round_)
    _demand(event.k == round_.k, "The shuffles of a round are not counted one by one.")
    _demand(is_stack(event.stack) and seat_of(event.stack) is None, "A hand was shuffled.")
    n = len(round_.cards(event.stack))
    _demand(event.n == n, "A shuffle was started over another number of cards than lie there.")
    most = full(n)
    steps = event.steps == most if event.algorithm == "forward" else 0 <= event.steps <= most
    _demand(event.algorithm in ALGORITHMS and steps, "A shuffle was started in an unknown way.")


def _check_digest(table: Table, round_: Round, k: int, seat: int, digest: bytes) -> None:
    shuffle = round_.shuffle
    given = round_.ahead if shuffle is None else shuffle.digests
    _demand(round_.entropy == "players", "A digest came in a round of the house's entropy.")
    _demand(k == round_.k and len(digest) == 32, "A digest came for another shuffle.")
    _demand(seat in table.seats and seat not in given, "A seat has two digests in one shuffle.")
    _demand(seat not in round_.withheld, "A digest came from a seat that withheld its reveal.")
    open_ = shuffle is None or not shuffle.closed_version
    _demand(open_, "A digest came after the digests were closed.")


def _check_swap(round_: Round, event: CardsSwapped, swaps: int) -> None:
    shuffle = _running(round_, event.k)
    _demand(shuffle.ready(), "The house shuffled before all entropy was on the table.")
    _demand(event.step == swaps < shuffle.steps, "The swaps of a shuffle are not in order.")
    i = event.step if shuffle.algorithm == "forward" else shuffle.n - 1 - event.step
    _demand(event.i == i, "A swap moved another card than its step says.")


def _check_seal(round_: Round, event: DeckSealed, swaps: int) -> None:
    shuffle = _running(round_, event.k)
    _demand(shuffle.ready(), "The house sealed the deck before all entropy was on the table.")
    _demand(swaps == shuffle.steps, "The house sealed the deck before the shuffle was done.")
    sizes = len(event.slots) == shuffle.n and all(len(c) == COMMITMENT_BYTES for c in event.slots)
    _demand(sizes and event.first == len(round_.faces), "The seal does not fit the stack.")


def _check_move(round_: Round, event: CardMoved) -> None:
    _still(round_)
    _check_lies(round_, event.slot, event.source)
    _demand(is_stack(event.to), "A card was moved to a place that is none.")
    size = len(round_.cards(event.to)) - (event.to == event.source)
    _demand(0 <= event.place <= size, "A card was moved to a place that is none.")
    if seat_of(event.to) is not None and seat_of(event.source) is None:
        _demand(round_.mixed([event.slot]), "A card was drawn that no shuffle had reached.")


def _check_lies(round_: Round, slot: int, source: str) -> None:
    lies = 0 <= slot < len(round_.faces) and slot in round_.cards(source)
    _demand(lies, "A card was taken from where it does not lie.")


def _running(round_: Round, k: int) -> Shuffle:
    if round_.shuffle is None or round_.shuffle.k != k:
        _fail("A step of a shuffle came that is not running.")
    return round_.shuffle


def _still(round_: Round) -> None:
    _demand(round_.shuffle is None, "Something happened to the cards while a shuffle was running.")


def _number(value: object) -> bool:
    return type(value) is int and 0 <= value <= NUMBER_MAX


def _demand(holds: bool, sentence: str) -> None:
    if not holds:
        raise HouseCheated(sentence)


def _fail(sentence: str) -> NoReturn:
    raise HouseCheated(sentence)
