"""The methods of the server: each with its parameters, its results, and what it may and costs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from dealer.gateway.rate_limit.costs import BYTES_PER_COMMIT, BYTES_PER_EVENT
from dealer.gateway.rpc import commands as c
from dealer.gateway.rpc import joining, queries, seating
from dealer.gateway.rpc.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call

Handler = Callable[[Session, Call], Awaitable[None]]
"""Answers a call itself; what follows the answer is sent after it."""

ONE_EVENT = BYTES_PER_COMMIT + BYTES_PER_EVENT
"""Bytes that every command is charged before it is decided; most of them move one card."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method; `results` are the types that its result can have.

    A command at a table has `build` and `answer`: the command that it makes is decided in the call
    that receives it. Any other method has a `handler`.

    `right` is what a service key needs, to act by its rights at the tables that it opened, with
    `admin` at all. None needs no right: a key's connection may use it as a player's may, with the
    token of a seat or of the host. Reading a table that anyone may watch needs none either. With
    `journal` a service's command is entered in the operators' journal: it concerns others.

    `scope` says whose command ids apply if the sender is both host and player. With `absence` the
    command depends on who is connected. A `measured` one takes longer than its events say: a deck,
    a shuffle, a whole round. `written` are the bytes that it is charged on admission.

    `automatic` methods are sent by clients without a player's action, and have their own rate.
    Those that `pushes` is true of are about a connection and what follows on it: they need a
    WebSocket.
    """

    params: type[p.Params]
    results: tuple[type[Struct], ...]
    handler: Handler | None = None
    build: c.Build | None = None
    answer: c.Answer = c.changed
    right: str | None = None
    scope: Literal["host", "seat"] = "seat"
    journal: bool = False
    absence: bool = False
    automatic: bool = False
    pushes: bool = False
    measured: bool = False
    written: int = 0

    @property
    def summary(self) -> str:
        """What the method does, in one sentence: the docstring of what carries it out."""
        return inspect.getdoc(self.build or self.handler) or ""


def _command(
    params: type[p.Params],
    build: c.Build,
    result: type[Struct] = r.Changed,
    answer: c.Answer = c.changed,
    *,
    right: str | None = None,
    scope: Literal["host", "seat"] = "seat",
    automatic: bool = False,
    absence: bool = False,
    journal: bool = False,
) -> Method:
    return Method(
        params,
        (result,),
        build=build,
        answer=answer,
        right=right,
        scope=scope,
        journal=journal,
        absence=absence,
        automatic=automatic,
        measured=scope == "host" or automatic,  # the others move a few cards, or write a text
        written=ONE_EVENT,
    )


METHODS: dict[str, Method] = {
    "table.close": _command(p.Command, c.close_table, right="close", journal=True, scope="host"),
    "round.open": _command(
        p.RoundOpen, c.open_round, r.RoundBegun, c.round_begun, right="open", scope="host"
    ),
    "round.close": _command(
        p.Command, c.close_round, r.RoundEnded, c.round_ended, right="close", scope="host"
    ),
    "deck.shuffle": _command(
        p.DeckShuffle, c.shuffle_deck, r.Shuffling, c.shuffling, right="open", scope="host"
    ),
    "deck.deal": _command(p.DeckDeal, c.deal, r.Dealt, c.dealt, right="open", scope="host"),
    "deck.draw": _command(p.DeckDraw, c.draw, r.Drawn, c.drawn),
    "deck.burn": _command(p.DeckBurn, c.burn, right="open"),
    "deck.cut": _command(p.DeckCut, c.cut, right="open"),
    "deck.return": _command(p.DeckReturn, c.return_to_deck, right="open"),
    "hand.discard": _command(p.HandDiscard, c.discard),
    "hand.play": _command(p.HandPlay, c.play),
    "hand.give": _command(p.HandGive, c.give),
    "hand.show": _command(p.HandShow, c.show),
    "hand.pass": _command(p.HandPass, c.pass_cards, right="open"),
    "hand.take_back": _command(p.Command, c.take_back, right="open"),
    "hand.return": _command(p.HandReturn, c.return_from_hand),
    "pile.draw": _command(p.PileDraw, c.draw_from_pile, r.Drawn, c.drawn),
    "pile.move": _command(p.PileMove, c.move, right="open"),
    "pile.shuffle": _command(
        p.PileShuffle, c.shuffle_pile, r.Shuffling, c.shuffling, right="open", scope="host"
    ),
    "pile.turn": _command(p.PileTurn, c.turn, right="open"),
    "entropy.commit": _command(p.EntropyCommit, c.commit_entropy, automatic=True),
    "entropy.reveal": _command(p.EntropyReveal, c.reveal_entropy, automatic=True),
    "seat.vacate": _command(
        p.SeatVacate, c.vacate_seat, absence=True, right="seat", journal=True, scope="host"
    ),
    "seat.move": _command(p.SeatMove, c.move_seat, right="seat"),
    "seat.ticket": Method(p.SeatTicket, (r.Ticket,), seating.seat_ticket, right="seat"),
    "table.transfer_host": _command(
        p.TableTransferHost, c.transfer_host, absence=True, right="seat", journal=True, scope="host"
    ),
    "table.note": _command(p.TableNote, c.note, right="open"),
    "table.open": Method(p.TableOpen, (r.Opened,), joining.table_open, right="open"),
    "table.join": Method(p.TableJoin, (r.Joined,), joining.table_join),
    "table.watch": Method(
        p.TableWatch, (r.State, r.Resumed), joining.table_watch, pushes=True, right="read"
    ),
    "table.resume": Method(p.TableResume, (r.Resumed,), joining.table_resume, pushes=True),
    "table.leave": Method(p.Command, (r.Left,), joining.table_leave),
    "table.list": Method(
        p.TableList, (r.Tables, r.ServiceTables), queries.table_list, right="read"
    ),
    "table.state": Method(p.TableState, (r.State, r.PastState), queries.table_state, right="read"),
    "table.presence": Method(p.OfTable, (r.Presence,), queries.table_presence, right="read"),
    "table.cosign": Method(p.TableCosign, (r.Cosigned,), queries.table_cosign, automatic=True),
    "audit.bundle": Method(p.OfTable, (r.Bundle,), queries.audit_bundle, right="read"),
    "session.hello": Method(p.SessionHello, (r.HelloResult,), joining.session_hello, pushes=True),
    "session.refresh": Method(p.Params, (r.TableStatuses,), queries.session_refresh, pushes=True),
    "feed.follow": Method(p.FeedFollow, (r.Following,), queries.feed_follow, pushes=True),
    "rpc.discover": Method(p.Params, (r.OpenRpcDocument,), queries.rpc_discover),
    "ping": Method(p.Params, (r.Pong,), queries.ping),
}
