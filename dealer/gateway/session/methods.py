"""The methods of the server: each with its parameters, its results, and what it may and costs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import get_type_hints

from msgspec import Struct

from dealer.gateway.session import broadcasting, joining, queries, seating
from dealer.gateway.session import commands as c
from dealer.gateway.session.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call

Handler = Callable[[Session, Call], Awaitable[None]]
"""Answers a call itself; what follows the answer is sent after it."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method; `results` are the types that its result can have.

    A command at a table has `build` and `answer`: the command that `build` makes is decided in the
    call that receives it, and its result is what `answer` returns. Any other method has a `handler`
    and gives its `results`.

    `rule` is the rule of the table that says who may use it; without one it does not depend on the
    rules. `right` is what a service key needs, to act by its rights at the tables that it opened,
    with `admin` at all. None needs no right: a key's connection may use it as a player's may, with
    the token of a seat or of the host. Reading a table that anyone may watch needs none either.
    With `journal` a service's command is entered in the operators' journal: it concerns others.

    The ids of a `host` command are among those of the host's commands, also if the sender is a
    player, too; one without a `rule` is the host's only, which `decide` checks. With `absence` the
    command depends on who is connected. `automatic` methods are sent by clients without a player's
    action, and have their own rate. Those that `pushes` is true of are about a connection and what
    follows on it: they need a WebSocket.
    """

    params: type[p.Params]
    results: tuple[type[Struct], ...] = ()
    handler: Handler | None = None
    build: c.Build | None = None
    answer: c.Answer = c.changed
    rule: str | None = None
    right: str | None = None
    host: bool = False
    journal: bool = False
    absence: bool = False
    automatic: bool = False
    pushes: bool = False

    def __post_init__(self) -> None:
        if self.build is not None:
            object.__setattr__(self, "results", (get_type_hints(self.answer)["return"],))

    @property
    def summary(self) -> str:
        """What the method does, in one sentence: the docstring of what carries it out."""
        return inspect.getdoc(self.build or self.handler) or ""


METHODS: dict[str, Method] = {
    "table.close": Method(
        p.Command, build=c.close_table, rule="close", right="close", host=True, journal=True
    ),
    "round.open": Method(
        p.RoundOpen, build=c.open_round, answer=c.round_begun, rule="open", right="open", host=True
    ),
    "round.close": Method(
        p.Command, build=c.close_round, answer=c.round_ended, rule="close", right="close", host=True
    ),
    "deck.shuffle": Method(
        p.DeckShuffle,
        build=c.shuffle_deck,
        answer=c.shuffling,
        rule="shuffle",
        right="open",
        host=True,
    ),
    "deck.deal": Method(
        p.DeckDeal, build=c.deal, answer=c.dealt, rule="deal", right="open", host=True
    ),
    "deck.draw": Method(p.DeckDraw, build=c.draw, answer=c.drawn, rule="draw"),
    "deck.burn": Method(p.DeckBurn, build=c.burn, rule="burn", right="open"),
    "deck.cut": Method(p.DeckCut, build=c.cut, rule="cut", right="open"),
    "deck.return": Method(p.DeckReturn, build=c.return_to_deck, rule="return", right="open"),
    "hand.discard": Method(p.HandDiscard, build=c.discard, rule="discard"),
    "hand.play": Method(p.HandPlay, build=c.play, rule="play"),
    "hand.give": Method(p.HandGive, build=c.give, rule="give"),
    "hand.show": Method(p.HandShow, build=c.show, rule="show"),
    "hand.pass": Method(p.HandPass, build=c.pass_cards, rule="pass", right="open"),
    "hand.take_back": Method(p.Command, build=c.take_back, rule="take_back", right="open"),
    "hand.return": Method(p.HandReturn, build=c.return_from_hand, rule="return"),
    "pile.draw": Method(p.PileDraw, build=c.draw_from_pile, answer=c.drawn, rule="pile"),
    "pile.move": Method(p.PileMove, build=c.move, rule="pile", right="open"),
    "pile.shuffle": Method(
        p.PileShuffle,
        build=c.shuffle_pile,
        answer=c.shuffling,
        rule="shuffle",
        right="open",
        host=True,
    ),
    "pile.turn": Method(p.PileTurn, build=c.turn, rule="turn", right="open"),
    "entropy.commit": Method(p.EntropyCommit, build=c.commit_entropy, automatic=True),
    "entropy.reveal": Method(p.EntropyReveal, build=c.reveal_entropy, automatic=True),
    "seat.vacate": Method(
        p.SeatVacate, build=c.vacate_seat, right="seat", host=True, journal=True, absence=True
    ),
    "seat.move": Method(p.SeatMove, build=c.move_seat, rule="move_seat", right="seat"),
    "seat.ticket": Method(p.SeatTicket, (r.Ticket,), seating.seat_ticket, right="seat"),
    "table.transfer_host": Method(
        p.TableTransferHost,
        build=c.transfer_host,
        right="seat",
        host=True,
        journal=True,
        absence=True,
    ),
    "table.note": Method(p.TableNote, build=c.note, rule="annotate", right="open"),
    "broadcast.link": Method(
        p.OfTable, (r.BroadcastLink,), broadcasting.link, right="broadcast", host=True
    ),
    "broadcast.revoke": Method(
        p.OfTable, (r.BroadcastRevoked,), broadcasting.revoke, right="broadcast", host=True
    ),
    "table.open": Method(p.TableOpen, (r.Opened,), joining.table_open, right="open"),
    "table.join": Method(p.TableJoin, (r.Joined,), joining.table_join, rule="join"),
    "table.watch": Method(
        p.TableWatch,
        (r.State, r.Resumed),
        joining.table_watch,
        rule="watch",
        right="read",
        pushes=True,
    ),
    "table.resume": Method(p.TableResume, (r.Resumed,), joining.table_resume, pushes=True),
    "table.leave": Method(p.Command, (r.Left,), joining.table_leave),
    "table.list": Method(
        p.TableList, (r.Tables, r.ServiceTables), queries.table_list, right="read"
    ),
    "table.state": Method(
        p.TableState, (r.State, r.PastState), queries.table_state, rule="watch", right="read"
    ),
    "table.presence": Method(
        p.OfTable, (r.Presence,), queries.table_presence, rule="watch", right="read"
    ),
    "table.cosign": Method(p.TableCosign, (r.Cosigned,), queries.table_cosign, automatic=True),
    "audit.bundle": Method(
        p.OfTable, (r.Bundle,), queries.audit_bundle, rule="watch", right="read"
    ),
    "session.hello": Method(p.SessionHello, (r.HelloResult,), joining.session_hello, pushes=True),
    "session.refresh": Method(p.Params, (r.TableStatuses,), queries.session_refresh, pushes=True),
    "feed.follow": Method(p.FeedFollow, (r.Following,), queries.feed_follow, pushes=True),
    "rpc.discover": Method(p.Params, (r.OpenRpcDocument,), queries.rpc_discover),
    "ping": Method(p.Params, (r.Pong,), queries.ping),
}
