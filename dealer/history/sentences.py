"""Every event as one sentence, for the audit, the text history and the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, assert_never

from dealer.game import events
from dealer.game.cards import UNKNOWN
from dealer.game.events import PROGRAM, SEAT_MOVE, SEAT_OFFER, TAKE_BACK, Event
from dealer.game.names import safe_text
from dealer.game.rules import PRACTICE
from dealer.game.stacks import BURN, DECK, DISCARD, is_pass_pile, passed_to, seat_of
from dealer.game.state import READMIT, SEAT_CHANGE, Table
from dealer.history.pile_titles import NO_GAMES, NO_TITLES, GameTitles, Titles, title_of, titles_at
from dealer.history.replay import ReplayStep, replay_bundle
from dealer.languages.language import Language, english
from dealer.proof.verify import Swap

_COMMON_PILES = frozenset({"table", "discard", "burn"})
_NO_WORDS = "—"  # of a swap that laid out a practice table
_PILE_OF_SEAT = re.compile(r"(?P<kind>won|pass|seat):(?P<seat>[1-9][0-9]{0,9})")


class Sentence(NamedTuple):
    """One event as a sentence; `round` is 0 outside of rounds, `cards` are the codes it names.

    `swap` is the recomputed swap, for a CardsSwapped of a closed round.
    """

    version: int
    at: int
    round: int
    type: str
    sentence: str
    cards: tuple[str, ...] = ()
    swap: Swap | None = None


SeatEvent = events.SeatTaken | events.SeatLeft | events.SeatVacated | events.HostTransferred
ShuffleEvent = (
    events.ShuffleStarted
    | events.EntropyCommitted
    | events.EntropyClosed
    | events.EntropyRevealed
    | events.ShuffleVoided
    | events.DeckSealed
)
TableEvent = (
    events.TableOpened
    | events.TableClosed
    | events.NoteAdded
    | events.RoundOpened
    | events.RoundClosed
)


def describe_all(
    lines: Sequence[bytes], swaps: Iterable[Swap], games: GameTitles = NO_GAMES
) -> Iterator[Sentence]:
    """An English sentence for each leaf among the verified `lines` of one table, from its first on.

    `swaps` are those that the verifier recomputed; without them a card is written as `??`. `games`
    are titles of piles by plain name, by game.
    """
    for step in replay_bundle(lines, swaps):
        yield describe(step, titles=titles_at(step.table, games))


def describe(
    step: ReplayStep, language: Language | None = None, titles: Titles = NO_TITLES
) -> Sentence:
    """The sentence of one event, in a language, or in English; `titles` are titles of piles."""
    sentence, cards = _Describer(step.table, language, titles)(step.event, step.swap)
    version, at, number, type_ = step[:4]
    return Sentence(version, at, number, type_, sentence, cards, step.swap)


def named(
    table: Table, stack: str, language: Language | None = None, titles: Titles = NO_TITLES
) -> str:
    """A stack in words: "the deck", "the hand of Ann (seat 1)", "the discard pile"."""
    return _Describer(table, language, titles).stack(stack)


class _Describer:
    """Sentences about events of a table whose state before the event is `table`."""

    def __init__(self, table: Table, language: Language | None, titles: Titles) -> None:
        self._table = table
        self._titles = titles
        self._language = language or english()

    def __call__(self, event: Event, swap: Swap | None) -> tuple[str, tuple[str, ...]]:
        """The sentence and the codes of the cards in it."""
        match event:
            case events.CardsSwapped(step=step, i=i):
                if swap is None:
                    return self._text("hiddenSwap", step=step, i=i), ()
                a, b = swap.cards
                words = " ".join(map(str, swap.words)) or _NO_WORDS
                return self._text("swap", step=step, i=i, a=a, j=swap.j, b=b, words=words), (a, b)
            case events.CardDrawn(seat=seat, source=source, slot=slot):
                card, place = self._face(slot), self._where(source, slot)
                sentence = self._text("drawn", player=self._who(seat), card=card, **{"from": place})
                return sentence, (card,)
            case events.CardMoved(slot=slot):
                return self._moved(event), (self._face(slot),)
            case events.CardShown(slot=slot, card=card):
                return self._text("shown", card=card, stack=self._stack_of(slot)), (card,)
            case events.CardPeeked(slot=slot, seat=seat):
                card, stack = self._face(slot), self._stack_of(slot)
                return self._text("peeked", player=self._who(seat), card=card, stack=stack), (card,)
            case events.StackCut(stack=stack, at=at):
                return self._text("cut", stack=self.stack(stack), place=at), ()
            case _:
                return self._cardless(event), ()

    def _moved(self, event: events.CardMoved) -> str:
        """A move from the deck to pile:burn is a burn, from a hand to pile:discard a discard."""
        source, to = event.source, event.to
        values = {"card": self._face(event.slot), "from": self._where(source, event.slot)}
        if to == BURN and source == DECK:
            return self._text("burned", **values)
        if to == DISCARD and seat_of(source) is not None:
            return self._text("discarded", **values)
        if is_pass_pile(to) and seat_of(source) is not None:
            return self._text("passed", **values, player=self._who(passed_to(to)))
        target, lying = self.stack(to), 0
        if self._table.round is not None:
            lying = len(self._table.round.cards(to)) - (to == source)
        if event.place != lying and seat_of(to) is None:
            target = self._text("below", stack=target)
        return self._text("moved", **values, to=target)

    def _cardless(self, event: TableEvent | SeatEvent | ShuffleEvent) -> str:
        """The sentence of an event that names no card."""
        if isinstance(event, SeatEvent):
            return self._of_seat(event)
        return self._of_shuffle(event) if isinstance(event, ShuffleEvent) else self._of_table(event)

    def _of_table(self, event: TableEvent) -> str:
        match event:
            case events.TableOpened(origin=origin, key=key, rules=rules):
                values = {"origin": safe_text(origin), "key": key.hex()}
                if PRACTICE in rules:
                    return self._text("practiceOpened", **values, **rules[PRACTICE])
                return self._text("tableOpened", **values)
            case events.TableClosed():
                return self._text("tableClosed")
            case events.RoundOpened(round=number, deck=deck, entropy=entropy, commitment=opened):
                return self._text(
                    "roundOpened",
                    round=number,
                    cards=len(deck),
                    entropy=entropy,
                    commitment=opened.hex(),
                )
            case events.RoundClosed(round=number, secret=secret):
                return self._text("roundClosed", round=number, secret=secret.hex())
            case events.NoteAdded(seat=seat, kind=kind, text=text):
                if kind == PROGRAM:
                    return self._text("program", text=safe_text(text))
                player = self._who(seat) if seat else self._text("host")
                if kind in (SEAT_MOVE, SEAT_OFFER) and (change := SEAT_CHANGE.fullmatch(text)):
                    who, to = self._who(int(change[1])), int(change[2])
                    if kind == SEAT_MOVE:
                        return self._text("seatMoves", player=who, seat=to)
                    return self._text("seatOffered", player=who, seat=to)
                if kind == READMIT:
                    return self._text("readmitted", player=player, name=safe_text(text))
                if kind != TAKE_BACK:
                    kind, text = safe_text(kind), safe_text(text)
                    return self._text("noted", player=player, kind=kind, text=text)
                first, _, last = safe_text(text).partition("-")
                if last:
                    return self._text("tookBackRange", player=player, first=first, last=last)
                return self._text("tookBack", player=player, version=first)

    def _of_seat(self, event: SeatEvent) -> str:
        match event:
            case events.SeatTaken(seat=seat, name=name, key=key, bot=bot):
                player = safe_text(name)
                if bot:
                    player = self._text("bot", name=player)
                if key:
                    return self._text("seatTakenKey", player=player, seat=seat, key=key.hex())
                return self._text("seatTaken", player=player, seat=seat)
            case events.SeatLeft(seat=seat):
                return self._text("seatLeft", player=self._who(seat), seat=seat)
            case events.SeatVacated(seat=seat, by=by, reason=reason):
                values = {"player": self._who(seat), "seat": seat, "by": by}
                if reason:
                    return self._text("seatVacatedFor", **values, reason=safe_text(reason))
                return self._text("seatVacated", **values)
            case events.HostTransferred(seat=seat):
                return self._text("hostTransferred", player=self._who(seat))

    def _of_shuffle(self, event: ShuffleEvent) -> str:
        match event:
            case events.ShuffleStarted(k=k, stack=stack, n=n, algorithm=algorithm, steps=steps):
                return self._text(
                    "shuffleStarted",
                    k=k,
                    stack=self.stack(stack),
                    n=n,
                    algorithm=algorithm,
                    steps=steps,
                )
            case events.EntropyCommitted(k=k, seat=seat, digest=digest):
                player = self._who(seat)
                return self._text("entropyCommitted", player=player, k=k, digest=digest.hex())
            case events.EntropyClosed(k=k):
                return self._text("entropyClosed", k=k)
            case events.EntropyRevealed(seat=seat, nonce=nonce):
                return self._text("entropyRevealed", player=self._who(seat), nonce=nonce.hex())
            case events.ShuffleVoided(k=k):
                return self._text("shuffleVoided", k=k, players=self._withholding())
            case events.DeckSealed(k=k, first=first, slots=slots):
                return self._text("deckSealed", k=k, first=first, last=first + len(slots) - 1)
            case _:
                assert_never(event)

    def _text(self, key: str, /, **values: Any) -> str:
        return self._language.text(f"history.{key}", **values)

    def _who(self, seat: int) -> str:
        player = self._table.seats.get(seat)
        if player is None:
            return self._text("seat", seat=seat)
        return self._text("player", name=safe_text(player.name), seat=seat)

    def _withholding(self) -> list[str]:
        shuffle = None if self._table.round is None else self._table.round.shuffle
        return [self._who(seat) for seat in (shuffle.missing() if shuffle else ())]

    def _face(self, slot: int) -> str:
        round_ = self._table.round
        return UNKNOWN if round_ is None else round_.face(slot) or UNKNOWN

    def _stack_of(self, slot: int) -> str:
        round_ = self._table.round
        return self.stack((round_ and round_.stack_of(slot)) or DECK)

    def stack(self, stack: str) -> str:
        """A stack in words."""
        seat = seat_of(stack)
        if seat is not None:
            return self._text("hand", player=self._who(seat))
        if stack == DECK:
            return self._text("deck")
        name = stack.removeprefix("pile:")
        title = title_of(name, self._titles)
        if title is not None:
            return self._text("titled", title=title)
        kind, player = name if name in _COMMON_PILES else "other", ""
        if of_seat := _PILE_OF_SEAT.fullmatch(name):
            kind, player = of_seat["kind"], self._who(int(of_seat["seat"]))
        return self._text("pile", kind=kind, player=player, name=name)

    def _where(self, stack: str, slot: int) -> str:
        """The stack of a card in words, which say so if it is not the top card there."""
        cards = [] if self._table.round is None else self._table.round.cards(stack)
        if not cards or cards[-1] == slot or seat_of(stack) is not None:
            return self.stack(stack)
        return self._text("below", stack=self.stack(stack))
