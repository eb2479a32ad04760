"""The rule that the documents name for a method is the one that the server applies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dealer.game.rules import ACTIONS
from dealer.gateway.schema import openrpc
from dealer.gateway.session.methods import METHODS
from tests.gateway.rpc_client import Refusal
from tests.gateway.tables import seat_players

RULE_OF = {name: method.rule for name, method in METHODS.items() if method.rule is not None}

PARAMS: dict[str, dict[str, Any]] = {
    "deck.cut": {"at": 1},
    "deck.return": {"count": 1},
    "hand.discard": {"cards": [0]},
    "hand.give": {"cards": [0], "to": 2},
    "hand.pass": {"cards": [0], "to": 2},
    "hand.play": {"cards": [0]},
    "hand.return": {"cards": [0]},
    "hand.show": {"all": True},
    "pile.draw": {"pile": "table"},
    "pile.move": {"pile": "table", "to": "pile:other"},
    "pile.shuffle": {"pile": "table"},
    "pile.turn": {"pile": "table", "all": True},
    "seat.move": {"to": 5},
    "table.note": {"kind": "chat", "text": "Hello"},
}
ENTERED = ("join", "watch")
"""Rules about those who have no seat."""


@pytest.mark.parametrize(
    ("method", "rule"),
    [pair for pair in RULE_OF.items() if pair[1] not in ENTERED],
    ids=lambda one: one,
)
async def test_a_command_is_refused_where_its_rule_allows_it_to_no_client(
    gateway, connect, method, rule
):
    rules: dict[str, Any] = {rule: "nobody"}
    table = await seat_players(connect, gateway, **rules)
    if rule != "open":
        await table.host.call("round.open", entropy="house")
        if rule != "shuffle":
            await table.host.call("deck.shuffle")
        if rule not in ("shuffle", "deal"):
            await table.host.call("deck.deal")
    with pytest.raises(Refusal) as refused:
        await table.players[0].call(method, **PARAMS.get(method, {}))
    assert refused.value.reason == "not_entitled"
    assert f"do not allow anyone to {rule}." in str(refused.value)


async def test_a_command_that_moves_cards_is_about_the_rule_of_the_stacks(gateway, connect):
    """`collect` is no method's own rule: it is of the host, who moves cards of another's hand."""
    table = await seat_players(connect, gateway, collect="nobody")
    await table.host.call("round.open", entropy="house")
    await table.host.call("deck.shuffle")
    await table.host.call("deck.deal")
    with pytest.raises(Refusal) as refused:
        await table.host.call("pile.move", **{"from": "hand:1", "to": "pile:x", "count": 1})
    assert "do not allow anyone to collect." in str(refused.value)


@pytest.mark.parametrize("method", [method for method, rule in RULE_OF.items() if rule in ENTERED])
async def test_a_client_without_a_seat_is_refused_by_the_rules_of_entering(
    gateway, connect, method
):
    table = await seat_players(connect, gateway, join="invite", watch="nobody")
    client = await connect(gateway)
    name = {"name": "Cid"} if method == "table.join" else {}
    with pytest.raises(Refusal) as refused:
        await client.call(method, table=table.id, **name)
    assert refused.value.reason == "not_entitled"


def test_the_document_names_the_rule_of_a_method():
    described = {one["name"]: one.get("x-rule") for one in json.loads(openrpc())["methods"]}
    assert described == {method: RULE_OF.get(method) for method in METHODS}
    assert set(RULE_OF.values()) == {*ACTIONS, *ENTERED} - {"collect"}
