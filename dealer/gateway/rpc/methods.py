"""The methods of the server: parameters, results and handler of each name."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from dealer.gateway.rpc import commands as c
from dealer.gateway.rpc import feed, joining, queries, seating
from dealer.gateway.rpc.commands import CommandHandler
from dealer.gateway.rpc.session import Session
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import Call

Handler = Callable[[Session, Call], Awaitable[None]]
"""Answers a call itself; what follows the answer is sent after it."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method; `results` are the types that its result can have.

    `automatic` methods are sent by clients without a player's action, and have their own rate.
    Those that `pushes` is true of are about a connection and what follows on it: they need a
    WebSocket.
    """

    params: type[p.Params]
    results: tuple[type[Struct], ...]
    handler: CommandHandler | Handler
    automatic: bool = False
    pushes: bool = False

    @property
    def summary(self) -> str:
        """What the method does, in one sentence: the docstring of its handler."""
        handler = self.handler
        described = handler.build if isinstance(handler, CommandHandler) else handler
        return inspect.getdoc(described) or ""


def _command(
    params: type[p.Params],
    build: c.Build,
    result: type[Struct] = r.Changed,
    answer: c.Answer = c.changed,
    *,
    role: Literal["host", "seat"] = "seat",
    automatic: bool = False,
    of_players: bool = False,
) -> Method:
    measured = role == "host" or automatic  # the others move a few cards, or write a text
    handler = CommandHandler(build, answer, role, of_players, measured)
    return Method(params, (result,), handler, automatic)


METHODS: dict[str, Method] = {
    "table.close": _command(p.Command, c.close_table, role="host"),
    "round.open": _command(p.RoundOpen, c.open_round, r.RoundBegun, c.round_begun, role="host"),
    "round.close": _command(p.Command, c.close_round, r.RoundEnded, c.round_ended, role="host"),
    "deck.shuffle": _command(p.DeckShuffle, c.shuffle_deck, r.Shuffling, c.shuffling, role="host"),
    "deck.deal": _command(p.DeckDeal, c.deal, r.Dealt, c.dealt, role="host"),
    "deck.draw": _command(p.DeckDraw, c.draw, r.Drawn, c.drawn),
    "deck.burn": _command(p.DeckBurn, c.burn),
    "deck.cut": _command(p.DeckCut, c.cut),
    "deck.return": _command(p.DeckReturn, c.return_to_deck),
    "hand.discard": _command(p.HandDiscard, c.discard),
    "hand.play": _command(p.HandPlay, c.play),
    "hand.give": _command(p.HandGive, c.give),
    "hand.show": _command(p.HandShow, c.show),
    "hand.pass": _command(p.HandPass, c.pass_cards),
    "hand.take_back": _command(p.Command, c.take_back),
    "hand.return": _command(p.HandReturn, c.return_from_hand),
    "pile.draw": _command(p.PileDraw, c.draw_from_pile, r.Drawn, c.drawn),
    "pile.move": _command(p.PileMove, c.move),
    "pile.shuffle": _command(p.PileShuffle, c.shuffle_pile, r.Shuffling, c.shuffling, role="host"),
    "pile.turn": _command(p.PileTurn, c.turn),
    "entropy.commit": _command(p.EntropyCommit, c.commit_entropy, automatic=True),
    "entropy.reveal": _command(p.EntropyReveal, c.reveal_entropy, automatic=True),
    "seat.vacate": _command(p.SeatVacate, c.vacate_seat, role="host", of_players=True),
    "seat.move": _command(p.SeatMove, c.move_seat),
    "seat.ticket": Method(p.SeatTicket, (r.Ticket,), seating.seat_ticket),
    "table.transfer_host": _command(
        p.TableTransferHost, c.transfer_host, role="host", of_players=True
    ),
    "table.note": _command(p.TableNote, c.note),
    "table.open": Method(p.TableOpen, (r.Opened,), joining.table_open),
    "table.join": Method(p.TableJoin, (r.Joined,), joining.table_join),
    "table.watch": Method(p.TableWatch, (r.State, r.Resumed), joining.table_watch, pushes=True),
    "table.resume": Method(p.TableResume, (r.Resumed,), joining.table_resume, pushes=True),
    "table.leave": Method(p.Command, (r.Left,), joining.table_leave),
    "table.list": Method(p.TableList, (r.Tables, r.ServiceTables), queries.table_list),
    "table.state": Method(p.TableState, (r.State, r.PastState), queries.table_state),
    "table.presence": Method(p.OfTable, (r.Presence,), queries.table_presence),
    "table.cosign": Method(p.TableCosign, (r.Cosigned,), queries.table_cosign, automatic=True),
    "audit.bundle": Method(p.OfTable, (r.Bundle,), queries.audit_bundle),
    "session.hello": Method(p.SessionHello, (r.HelloResult,), joining.session_hello, pushes=True),
    "session.refresh": Method(p.Params, (r.TableStatuses,), queries.session_refresh, pushes=True),
    "feed.follow": Method(p.FeedFollow, (r.Following,), feed.feed_follow, pushes=True),
    "rpc.discover": Method(p.Params, (r.OpenRpcDocument,), queries.rpc_discover),
    "ping": Method(p.Params, (r.Pong,), queries.ping),
}
