"""The methods of the server: parameters, results and handler of each name."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgspec import Struct

from dealer.gateway.rpc import commands as c
from dealer.gateway.rpc import feed, joining, queries, seating
from dealer.gateway.rpc.commands import TableCommand
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
    handler: TableCommand | Handler
    automatic: bool = False
    pushes: bool = False

    @property
    def summary(self) -> str:
        """What the method does, in one sentence: the docstring of its handler."""
        handler = self.handler
        described = handler.build if isinstance(handler, TableCommand) else handler
        return inspect.getdoc(described) or ""


def _command(
    params: type[p.Params], result: type[Struct], handler: TableCommand, *, automatic: bool = False
) -> Method:
    return Method(params, (result,), handler, automatic)


METHODS: dict[str, Method] = {
    "table.close": _command(
        p.Command, r.Changed, TableCommand(c.close_table, c.changed, role="host")
    ),
    "round.open": _command(
        p.RoundOpen, r.RoundBegun, TableCommand(c.open_round, c.round_begun, role="host")
    ),
    "round.close": _command(
        p.Command, r.RoundEnded, TableCommand(c.close_round, c.round_ended, role="host")
    ),
    "deck.shuffle": _command(
        p.DeckShuffle, r.Shuffling, TableCommand(c.shuffle_deck, c.shuffling, role="host")
    ),
    "deck.deal": _command(p.DeckDeal, r.Dealt, TableCommand(c.deal, c.dealt, role="host")),
    "deck.draw": _command(p.DeckDraw, r.Drawn, TableCommand(c.draw, c.drawn)),
    "deck.burn": _command(p.DeckBurn, r.Changed, TableCommand(c.burn, c.changed)),
    "deck.cut": _command(p.DeckCut, r.Changed, TableCommand(c.cut, c.changed)),
    "deck.return": _command(p.DeckReturn, r.Changed, TableCommand(c.return_to_deck, c.changed)),
    "hand.discard": _command(p.HandDiscard, r.Changed, TableCommand(c.discard, c.changed)),
    "hand.play": _command(p.HandPlay, r.Changed, TableCommand(c.play, c.changed)),
    "hand.give": _command(p.HandGive, r.Changed, TableCommand(c.give, c.changed)),
    "hand.show": _command(p.HandShow, r.Changed, TableCommand(c.show, c.changed)),
    "hand.pass": _command(p.HandPass, r.Changed, TableCommand(c.pass_cards, c.changed)),
    "hand.take_back": _command(p.Command, r.Changed, TableCommand(c.take_back, c.changed)),
    "hand.return": _command(p.HandReturn, r.Changed, TableCommand(c.return_from_hand, c.changed)),
    "pile.draw": _command(p.PileDraw, r.Drawn, TableCommand(c.draw_from_pile, c.drawn)),
    "pile.move": _command(p.PileMove, r.Changed, TableCommand(c.move, c.changed)),
    "pile.shuffle": _command(
        p.PileShuffle, r.Shuffling, TableCommand(c.shuffle_pile, c.shuffling, role="host")
    ),
    "pile.turn": _command(p.PileTurn, r.Changed, TableCommand(c.turn, c.changed)),
    "entropy.commit": _command(
        p.EntropyCommit, r.Changed, TableCommand(c.commit_entropy, c.changed), automatic=True
    ),
    "entropy.reveal": _command(
        p.EntropyReveal, r.Changed, TableCommand(c.reveal_entropy, c.changed), automatic=True
    ),
    "seat.vacate": _command(
        p.SeatVacate, r.Changed, TableCommand(c.vacate_seat, c.changed, "host", of_players=True)
    ),
    "seat.move": _command(p.SeatMove, r.Changed, TableCommand(c.move_seat, c.changed)),
    "seat.ticket": Method(p.SeatTicket, (r.Ticket,), seating.seat_ticket),
    "table.transfer_host": _command(
        p.TableTransferHost,
        r.Changed,
        TableCommand(c.transfer_host, c.changed, "host", of_players=True),
    ),
    "table.note": _command(p.TableNote, r.Changed, TableCommand(c.note, c.changed)),
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
