"""Every method over a real socket: its results and its refusals."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable

import pytest

from dealer.game.cards import STANDARD, build
from dealer.gateway.presence.membership import SubscriptionState
from tests.gateway.rpc_client import Refusal, refusal
from tests.gateway.tables import commit_entropy, reveal_entropy, seat_and_shuffle, seat_players


async def reason_of(request) -> str:
    """The reason for which a request is refused, or the code if it has none."""
    refused = await refusal(request)
    error = refused.error
    assert error["message"].endswith((".", "?"))
    if error["code"] > 0:
        assert set(error["data"]) >= {"reason", "temporary"}
    return refused.reason or str(refused.code)


async def test_a_table_is_opened_and_joined(gateway, connect) -> None:
    host = await connect(gateway)
    opened = await host.call("table.open", name="Friday", seats=3, deck="54")
    assert opened["version"] == 1
    assert opened["origin"] == f"localhost/t/{opened['table']}"
    joined = await host.call("table.join", table=opened["table"], name="Änne", seat=2)
    assert (joined["seat"], joined["version"]) == (2, 2)
    assert joined["state"]["rules"] == {
        "collect": "nobody",
        "deck": "54",
        "name": "Friday",
        "seats": 3,
    }
    assert joined["state"]["seats"] == [{"name": "Änne", "seat": 2, "since": 2}]
    assert joined["checkpoint"].split("\n")[1] == "2"
    assert len(joined["edge"]) == 1
    assert await reason_of(host.call("table.join", name="again")) == "bad_request"
    other = await connect(gateway)
    assert await reason_of(other.call("table.join", name="x")) == "bad_request"
    taken = other.call("table.join", table=opened["table"], name="x", seat=2)
    assert await reason_of(taken) == "seat_occupied"
    assert await reason_of(other.call("table.join", table="0" * 32, name="x")) == "unknown_table"
    assert await reason_of(other.call("table.join", table="elsewhere", name="x")) == "unknown_table"


UNFIT = (
    {"entropy": "dice"},
    {"game": 5},
    {"pack": ["x"]},
    {"deck": None},
    {"deck": {"decks": True}},
)


@pytest.mark.parametrize(
    "rules",
    [
        {"a": None},
        {"a": 1.5},
        {"A": 1},
        {"preset": "chess"},
        {"a": "\x07"},
        {"deck": ["As", "As"]},
        *UNFIT,
    ],
)
async def test_rules_that_cannot_be_stored_are_refused(gateway, connect, rules) -> None:
    host = await connect(gateway)
    assert await reason_of(host.call("table.open", rules=rules)) == "bad_request"


async def test_a_misspelled_rule_is_named(gateway, connect) -> None:
    host = await connect(gateway)
    with pytest.raises(Refusal, match="Unknown rule comit_ms; did you mean commit_ms"):
        await host.call("table.open", rules={"comit_ms": 500})
    rules = {"commit_ms": 500, "stakes": "matches", "x_seat": [1]}
    opened = await host.call("table.open", rules=rules)
    assert (await host.call("table.state", table=opened["table"]))["state"]["rules"] == {
        "collect": "nobody",
        **rules,
    }


async def test_every_move_of_a_round(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    host, (ann, bob) = table.host, table.players
    opened = await host.call("round.open", entropy="house", commit_ms=500)
    assert (opened["round"], opened["version"], len(opened["commitment"])) == (1, 4, 64)
    assert (await host.call("deck.shuffle"))["k"] == 0
    assert (await host.call("deck.cut", at=20))["version"] > 50
    await host.call("deck.burn")
    dealt = await host.call("deck.deal", each=3)
    assert dealt["dealt"] == 6
    drawn = await ann.call("deck.draw", count=2)
    assert set(drawn["cards"]) <= set(STANDARD)
    first, second = drawn["cards"]
    bottom = await bob.call("deck.draw", from_="bottom")
    assert len(bottom["cards"]) == 1
    await ann.call("hand.discard", cards=[first])
    await ann.call("hand.play", cards=[second])
    state = (await bob.call("table.state"))["state"]
    assert [0, second] not in state["round"]["cards"]
    assert second in [card for _, card, *_ in state["round"]["cards"]]
    await bob.call("hand.give", cards=bottom["cards"], to=1)
    await ann.call("hand.show", cards=bottom["slots"])
    await ann.call("hand.show", cards=[private_cards(ann)[0]], to=2)
    await ann.call("hand.return", cards=bottom["cards"], where="bottom")
    await bob.call("deck.return", count=1)
    back = await ann.call("pile.draw", pile="discard")
    assert back["cards"] == [first]
    await ann.call("pile.move", from_="hand", to="mine", cards=[first], face="up")
    await ann.call("pile.move", pile="mine", to="deck", where=0)
    await ann.call("pile.move", from_="deck", to="mine", count=3)
    assert (await host.call("pile.shuffle", pile="mine"))["k"] == 1
    assert len((await ann.call("pile.draw", pile="pile:mine", from_="random"))["cards"]) == 1
    await ann.call("pile.turn", pile="mine")
    closed = await host.call("round.close")
    assert (closed["round"], len(closed["secret"])) == (1, 128)
    await host.call("table.close")
    assert await reason_of(host.call("round.open")) == "table_closed"
    await bob.until_version(closed["version"] + 1)
    assert bob.versions == list(range(4, closed["version"] + 2))


def private_cards(client) -> list[str]:
    return [event["private"]["card"] for event in client.events if "private" in event]


async def test_players_contribute_entropy(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    await table.host.call("round.open", deck={"decks": 2, "jokers": 1})
    await commit_entropy(table)
    assert (await table.host.call("deck.shuffle"))["k"] == 0
    await reveal_entropy(table)
    ann = table.players[0]
    drawn = await ann.call("deck.draw")
    assert drawn["cards"][0] in build(decks=2, jokers=1)
    types = ann.types()
    assert types.count("EntropyRevealed") == 2
    assert types[-1] == "CardDrawn"
    sizes = [note["size"] for note in ann.notices("checkpoint")]
    kinds = {event["version"]: event["type"] for event in ann.events}
    assert [kinds[size] for size in sizes] == ["EntropyClosed", "DeckSealed"]


async def test_the_waits_of_the_rules_are_those_of_a_round_without_its_own(
    gateway, connect
) -> None:
    table = await seat_players(connect, gateway, players=0, commit_ms=250, reveal_ms=600_000)
    await table.host.call("round.open", commit_ms=3_600_000)
    round_ = (await table.host.call("table.state"))["state"]["round"]
    assert (round_["commit_ms"], round_["reveal_ms"]) == (3_600_000, 600_000)
    await table.host.call("round.close")
    await table.host.call("round.open")
    round_ = (await table.host.call("table.state"))["state"]["round"]
    assert (round_["commit_ms"], round_["reveal_ms"]) == (250, 600_000)


async def test_a_name_is_taken_until_its_seat_is_left(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1)
    client = await connect(gateway)
    again = {"table": table.id, "name": " PLAYER  1 "}
    assert await reason_of(client.call("table.join", **again)) == "name_taken"
    await table.players[0].call("table.leave")
    assert (await client.call("table.join", **again))["seat"] == 1


async def test_a_random_draw_waits_for_the_players(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    await table.host.call("round.open")
    await commit_entropy(table)
    ann = table.players[0]
    drawing = ann.send("deck.draw", from_="random", count=2, cmd="r")
    await ann.until(lambda: "EntropyClosed" in ann.types())
    assert await reason_of(ann.call("deck.draw", cmd="s")) == "shuffle_running"
    await reveal_entropy(table)
    drawn = await drawing
    assert len(drawn["cards"]) == len(drawn["slots"]) == 2
    assert await ann.call("deck.draw", from_="random", count=2, cmd="r") == drawn


async def test_the_reasons_of_refused_commands(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1, seats=1)
    host, (ann,) = table.host, table.players
    assert await reason_of(ann.call("deck.draw")) == "no_round"
    assert await reason_of(ann.call("round.open")) == "not_entitled"
    assert await reason_of(host.call("deck.draw")) == "not_your_seat"
    assert await reason_of(host.call("hand.play", cards=["As"])) == "not_your_seat"
    late = await connect(gateway)
    assert await reason_of(late.call("table.join", table=table.id, name="late")) == "table_full"
    assert await reason_of(late.call("deck.draw", table=table.id)) == "not_your_seat"
    await host.call("round.open", entropy="house")
    assert await reason_of(host.call("round.open")) == "round_open"
    assert await reason_of(ann.call("deck.draw")) == "not_sealed"
    await host.call("deck.shuffle")
    assert await reason_of(ann.call("deck.draw", count=53)) == "deck_empty"
    assert await reason_of(ann.call("hand.discard", cards=["As"])) == "card_not_in_hand"
    assert await reason_of(ann.call("pile.draw", pile="discard", cards=[3])) == "card_not_there"
    assert await reason_of(host.call("deck.cut", at=99)) == "bad_place"
    assert await reason_of(ann.call("pile.move", to="deck")) == "bad_request"
    assert await reason_of(ann.call("entropy.commit", round=1, k=0, digest="0" * 64)) == (
        "entropy_out_of_turn"
    )
    assert await reason_of(ann.call("deck.steal")) == "-32601"
    assert await reason_of(ann.call("deck.draw", count="all")) == "-32602"
    assert await reason_of(ann.call("table.cosign", cosignature="nonsense")) == "bad_request"


async def test_a_private_table_needs_an_invitation(gateway, connect) -> None:
    host = await connect(gateway)
    opened = await host.call("table.open", rules={"join": "invite", "watch": "nobody"})
    table = opened["table"]
    client = await connect(gateway)
    assert await reason_of(client.call("table.join", table=table, name="x")) == "not_entitled"
    wrong = client.call("table.join", table=table, name="x", invite="0" * 32)
    assert await reason_of(wrong) == "not_entitled"
    for method in ("table.watch", "table.state", "audit.bundle"):
        assert await reason_of(client.call(method, table=table)) == "not_entitled"
    await client.call("table.join", table=table, name="x", invite=opened["invite"])
    assert (await client.call("table.state"))["version"] == 2
    assert (await host.call("table.watch"))["version"] == 2


async def test_another_connection_may_act_with_a_token(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    other = await connect(gateway)
    assert await reason_of(other.call("deck.draw", table=table.id, token="host.x")) == "bad_token"
    drawn = await other.call("deck.draw", table=table.id, token=table.tokens[0])
    assert len(drawn["cards"]) == 1
    assert len((await other.call("deck.draw"))["cards"]) == 1
    mixed = other.call("deck.draw", token=table.tokens[1])
    assert await reason_of(mixed) == "bad_request"
    await other.call("deck.deal", token=table.host_token)
    assert not other.notifications, "a connection that only acts gets no events"


async def test_the_token_of_a_seat_that_was_left_is_invalid(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann, bob = table.players
    left = await ann.call("table.leave")
    assert await reason_of(ann.call("deck.draw", table=table.id)) == "not_your_seat"
    resuming = ann.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    assert await reason_of(resuming) == "bad_token"
    await bob.until_version(left["version"])
    assert bob.events[-1]["type"] == "SeatLeft"
    carol = await connect(gateway)
    assert (await carol.call("table.join", table=table.id, name="Carol"))["seat"] == 1
    other = await connect(gateway)
    assert await reason_of(other.call("deck.draw", table=table.id, token=table.tokens[0])) == (
        "bad_token"
    )


async def test_a_command_id_is_executed_once(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann, bob = table.players
    first, again = await asyncio.gather(
        ann.send("deck.draw", cmd="a"), ann.send("deck.draw", cmd="a")
    )
    assert first == again
    assert await reason_of(ann.call("deck.draw", cmd="a", count=2)) == "command_reused"
    assert (await bob.call("deck.draw", cmd="a"))["cards"] != first["cards"]
    fresh = await connect(gateway)
    token = table.tokens[0]
    assert await fresh.call("deck.draw", table=table.id, token=token, cmd="a") == first


async def test_a_new_player_in_a_seat_gets_no_answer_of_the_previous_one(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    (ann,) = table.players
    first = await ann.call("deck.draw", cmd="1")
    await ann.call("table.leave")
    carol = await connect(gateway)
    await carol.call("table.join", table=table.id, name="Carol")
    assert (await carol.call("deck.draw", cmd="1"))["cards"] != first["cards"]


async def test_expect_refuses_commands_for_an_older_version(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    (ann,) = table.players
    version = (await ann.call("table.state"))["version"]
    first = await ann.call("deck.draw", expect=version, cmd="a")
    assert await reason_of(ann.call("deck.draw", expect=version)) == "conflict"
    assert await ann.call("deck.draw", expect=version, cmd="a") == first
    assert await reason_of(ann.call("table.leave", expect=version)) == "conflict"


async def test_a_repeated_join_gets_the_same_seat(gateway, connect) -> None:
    host = await connect(gateway)
    table = (await host.call("table.open"))["table"]
    cmd = str(uuid.uuid4())
    first = await connect(gateway)
    joined = await first.call("table.join", table=table, name="Ann", cmd=cmd)
    assert await first.call("table.join", table=table, name="Ann", cmd=cmd) == joined
    second = await connect(gateway)
    again = await second.call("table.join", table=table, name="Ann", cmd=cmd)
    assert (again["seat"], again["token"]) == (joined["seat"], joined["token"])
    assert await first.wait_closed() == 4409
    other = second.call("table.open", cmd=cmd)
    assert await reason_of(other) == "command_reused"


async def test_a_guessable_command_id_does_not_give_another_clients_seat(gateway, connect) -> None:
    host = await connect(gateway)
    table = (await host.call("table.open", cmd="1"))["table"]
    first, second = await connect(gateway), await connect(gateway)
    one = await first.call("table.join", table=table, name="Ann", cmd="1")
    two = await second.call("table.join", table=table, name="Bob", cmd="1")
    assert one["seat"] != two["seat"]
    assert (await second.call("table.open", cmd="2"))["table"] != table
    assert await first.call("table.join", table=table, name="Ann", cmd="1") == one
    assert await reason_of(first.call("table.join", table=table, name="Eve", cmd="1")) == (
        "command_reused"
    )


async def test_a_repeated_open_gets_the_same_table(gateway, connect) -> None:
    first, second = await connect(gateway), await connect(gateway)
    cmd = str(uuid.uuid4())
    opened = await first.call("table.open", name="t", cmd=cmd)
    assert await second.call("table.open", name="t", cmd=cmd) == opened
    assert await reason_of(second.call("table.open", name="u", cmd=cmd)) == "command_reused"


async def test_a_request_without_an_id_is_executed_and_not_answered(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    (ann,) = table.players
    before = len(ann.frames)
    await ann.send_raw('{"jsonrpc":"2.0","method":"deck.draw"}')
    await ann.send_raw('{"jsonrpc":"2.0","method":"deck.draw","params":{"count":99}}')
    await ann.send_raw('{"jsonrpc":"2.0","method":"deck.steal"}')
    await ann.call("ping")
    await ann.until(lambda: ann.events[-1]["type"] == "CardDrawn")
    assert len(ann.frames) == before + 2


async def test_pipelined_requests_are_executed_in_order(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    fresh = await connect(gateway, path=f"/ws/{table.id}")
    frames = [
        {"id": 1, "method": "table.join", "params": {"name": "Zoe"}},
        {"id": 2, "method": "deck.draw"},
        {"id": 3, "method": "table.state"},
        {"id": 4, "method": "table.leave"},
        {"id": 5, "method": "deck.draw"},
    ]
    for frame in frames:
        await fresh.send_raw(json.dumps({"jsonrpc": "2.0", "params": {}} | frame))
    await fresh.until(lambda: len(fresh.notices("answer")) == 5)
    answers = fresh.notices("answer")
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5]
    assert len(answers[1]["result"]["cards"]) == 1
    assert answers[4]["error"]["data"]["reason"] == "not_your_seat"


async def test_the_results_of_session_methods(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann = table.players[0]
    tables = (await ann.call("session.refresh"))["tables"]
    assert [(one["table"], one["seat"]) for one in tables] == [(table.id, 1)]
    assert (await ann.call("ping"))["at"] > 1_600_000_000_000
    bundle = await ann.call("audit.bundle")
    assert bundle["url"] == f"/tables/{table.id}/bundle.jsonl"
    assert (await ann.call("session.hello"))["server"]["protocol"] == "dealer.v1"
    spectator = await connect(gateway)
    assert await spectator.call("table.watch", table=table.id)
    left = await spectator.call("table.leave", table=table.id)
    assert left["version"] == bundle["version"]
    assert (await spectator.call("session.refresh"))["tables"] == []


@pytest.mark.parametrize(
    "deck",
    [
        *({"decks": number} for number in ("2", [1], True, 0, -1, 99, 1.5)),
        *({"jokers": number} for number in ("1", 3, -1)),
        {"cards": 5},
        {"cards": {}},
        "53",
    ],
)
async def test_a_deck_in_the_rules_is_validated(gateway, connect, deck) -> None:
    host = await connect(gateway)
    bounds = r'"decks" \(1 to 20\), "jokers" \(0 to 2\) and "cards" \(codes\)\.$'
    with pytest.raises(Refusal, match=bounds) as refused:
        await host.call("table.open", rules={"deck": deck})
    assert refused.value.reason == "bad_request"


async def test_a_parameter_of_a_deck_says_its_bounds(gateway, connect) -> None:
    host = await connect(gateway)
    for deck, bound in (
        ({"decks": 99}, "at most 20"),
        ({"decks": -1}, "at least 1"),
        ({"jokers": 3}, "at most 2"),
    ):
        with pytest.raises(Refusal, match=bound):
            await host.call("table.open", deck=deck)


async def test_a_move_is_taken_back(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway)
    ann, bob = table.players
    first, second = (await ann.call("deck.draw", count=2))["slots"]
    assert await reason_of(ann.call("hand.take_back")) == "nothing_to_take_back"
    discarded = await ann.call("hand.discard", cards=[first, second])
    assert await reason_of(bob.call("hand.take_back")) == "nothing_to_take_back"
    again = [await ann.call("hand.take_back", cmd="undo") for _ in range(2)]
    assert again == [{"version": discarded["version"] + 3}] * 2
    await ann.until_version(again[0]["version"])
    back, note = ann.events[-2:]
    assert back["private"]["slot"] == first
    versions = f"{discarded['version'] - 1}-{discarded['version']}"
    assert note["public"] == {"kind": "take_back", "seat": 1, "text": versions}
    assert await reason_of(ann.call("hand.take_back")) == "nothing_to_take_back"
    assert await reason_of(ann.call("table.note", kind="take_back", text="1")) == "bad_request"


async def test_cards_are_passed_together(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway)
    ann, bob = table.players
    mine, his = [(await client.call("deck.draw"))["slots"] for client in (ann, bob)]
    await ann.call("hand.pass", cards=mine, to=2)
    assert await reason_of(bob.call("pile.draw", pile="pass:2")) == "not_entitled"
    assert await reason_of(bob.call("hand.pass")) == "not_entitled"
    assert await reason_of(bob.call("hand.pass", cards=his)) == "-32602"
    done = await bob.call("hand.pass", cards=his, to=1)
    for client, slots in ((ann, his), (bob, mine)):
        await client.until_version(done["version"])
        assert client.events[-1]["at"] == client.events[-3]["at"]
        got = [event["private"]["slot"] for event in client.events[-2:] if "private" in event]
        assert got == slots
    assert await reason_of(table.host.call("hand.pass")) == "bad_request"


async def test_a_deal_to_piles_and_whole_piles(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway)
    ann = table.players[0]
    piles = [{"name": "board", "count": 2, "face": "up"}, {"name": "pile:kitty", "count": 3}]
    dealt = await table.host.call("deck.deal", each=2, piles=piles)
    assert dealt["dealt"] == 9
    onto_pile = await table.host.call("deck.deal", each=0, piles=piles[1:])
    assert onto_pile["dealt"] == 3
    await ann.call("pile.move", pile="kitty", to="won-1", all=True)
    await ann.call("pile.turn", pile="won-1", all=True)
    taken = await ann.call("pile.draw", pile="won-1", all=True)
    assert len(taken["cards"]) == 6
    await ann.call("hand.show", all=True)
    both = ann.call("pile.draw", pile="board", all=True, count=2)
    assert await reason_of(both) == "bad_request"
    assert await reason_of(ann.call("hand.show")) == "-32602"
    short = table.host.call("deck.deal", each=1, piles=[{"name": "x", "count": 52}])
    assert await reason_of(short) == "deck_empty"


async def test_the_event_and_the_answer_of_a_draw_are_one_write_to_its_player(
    gateway, connect, monkeypatch
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    written: list[bytes] = []
    live_table = gateway.context.service.tables.get(table.id)
    assert live_table is not None
    for subscription in live_table.subscribers:
        transport = subscription.transport
        monkeypatch.setattr(transport, "write", both(transport.write, written.append))
    await table.players[0].call("deck.draw")
    mine = [data for data in written if b'"id":' in data]
    assert len(mine) == 1
    assert mine[0].index(b'"private":') < mine[0].index(b'"result":')
    assert len(written) == sum(
        each.state is SubscriptionState.LIVE for each in live_table.subscribers
    )


def both(
    first: Callable[[bytes], None], second: Callable[[bytes], None]
) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        first(data)
        second(data)

    return write
