"""Commands by name: the step's random number chooses what the state of that moment allows."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dealer.game import commands as c
from dealer.game.stacks import BURN, DECK, hand, pile
from dealer.game.state import Table

if TYPE_CHECKING:
    from tests.simulation.core.actor import Actor

Choice = Callable[["Actor", Table, Random], c.Command]

FACES = ("As", "Ah", "2s", "2h", "3s", "3h")
STACKS = (pile("table"), pile("discard"), DECK, pile("side"))


def _card(actor: Actor, table: Table, random: Random) -> int:
    """A slot of the actor's hand; any other where it is empty."""
    round_ = table.round
    held = [] if round_ is None or actor.holder is None else round_.cards(hand(actor.holder.seat))
    return random.choice(held) if held else random.randrange(4)


def _own(actor: Actor) -> str:
    return hand(1 if actor.holder is None else actor.holder.seat)


def _seat(actor: Actor, random: Random) -> int:
    return random.randrange(1, actor.world.plan.settings["seats"] + 2)


def _open_round(actor: Actor, table: Table, random: Random) -> c.Command:
    settings = actor.world.plan.settings
    wait = settings["wait_ms"]
    return c.OpenRound(actor.sender(), FACES[: settings["cards"]], settings["entropy"], wait, wait)


def _from_hand(action: str, to: str, face: str) -> Choice:
    def choose(actor: Actor, table: Table, random: Random) -> c.Command:
        cards = (_card(actor, table, random),)
        return c.Move(actor.sender(), action, _own(actor), to, cards, face=face)  # type: ignore[arg-type]

    return choose


def _give(actor: Actor, table: Table, random: Random) -> c.Command:
    cards = (_card(actor, table, random),)
    return c.Move(actor.sender(), "give", _own(actor), hand(_seat(actor, random)), cards)


def _pile_move(actor: Actor, table: Table, random: Random) -> c.Command:
    source, to = random.choice(STACKS), random.choice(STACKS)
    return c.Move(actor.sender(), "pile", source, to, count=1, face=random.choice(("up", "down")))


def _pass(actor: Actor, table: Table, random: Random) -> c.Command:
    if random.random() < 0.3:
        return c.Pass(actor.sender())
    return c.Pass(actor.sender(), (_card(actor, table, random),), _seat(actor, random))


def _shuffle(actor: Actor, table: Table, random: Random) -> c.Command:
    algorithm = random.choice(("forward", "backward"))
    steps = random.choice((None, None, 2))
    return c.StartShuffle(actor.sender(), DECK, algorithm, steps)


def _show(actor: Actor, table: Table, random: Random) -> c.Command:
    to = random.choice((None, _seat(actor, random)))
    return c.Show(actor.sender(), _own(actor), (_card(actor, table, random),), to)


CHOICES: dict[str, Choice] = {
    "draw": lambda a, t, r: c.Draw(a.sender(), r.choice((1, 1, 2))),
    "draw_random": lambda a, t, r: c.DrawAtRandom(a.sender(), 1),
    "deal": lambda a, t, r: c.Deal(a.sender(), 1),
    "shuffle": _shuffle,
    "round_open": _open_round,
    "round_close": lambda a, t, r: c.CloseRound(a.sender()),
    "burn": lambda a, t, r: c.Move(a.sender(), "burn", DECK, BURN, count=1),
    "cut": lambda a, t, r: c.Cut(a.sender(), r.randrange(1, 4)),
    "play": _from_hand("play", pile("table"), "up"),
    "discard": _from_hand("discard", pile("discard"), "down"),
    "give": _give,
    "show": _show,
    "pass": _pass,
    "take_back": lambda a, t, r: c.TakeBack(a.sender()),
    "return_hand": _from_hand("return", DECK, "down"),
    "pile_draw": lambda a, t, r: c.Draw(a.sender(), 1, r.choice(STACKS)),
    "pile_move": _pile_move,
    "pile_shuffle": lambda a, t, r: c.StartShuffle(a.sender(), r.choice(STACKS)),
    "note": lambda a, t, r: a.note(),
    "vacate": lambda a, t, r: c.VacateSeat(a.sender(), _seat(a, r)),
    "move_seat": lambda a, t, r: c.MoveSeat(a.sender(), _seat(a, r)),
    "transfer_host": lambda a, t, r: c.TransferHost(a.sender(), _seat(a, r)),
    "close_table": lambda a, t, r: c.CloseTable(a.sender()),
}
