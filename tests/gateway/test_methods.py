"""Every method over a real socket: what it answers, and how it refuses."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from dealer.game.cards import STANDARD, build
from tests.gateway.guest import Refusal
from tests.gateway.tables import promise, reveal, seat_all, shuffled


async def refused(asking) -> str:
    with pytest.raises(Refusal) as caught:
        await asking
    error = caught.value.error
    assert error["message"].endswith(".")
    if error["code"] > 0:
        assert set(error["data"]) >= {"reason", "temporary"}
    return caught.value.reason or str(caught.value.code)


async def test_a_table_is_opened_and_joined(gateway, arrive) -> None:
    host = await arrive(gateway)
    opened = await host.ask("table.open", name="Friday", seats=3, deck="54")
    assert opened["version"] == 1
    assert opened["origin"] == f"localhost/t/{opened['table']}"
    joined = await host.ask("table.join", table=opened["table"], name="Änne", seat=2)
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
    assert await refused(host.ask("table.join", name="again")) == "bad_request"
    other = await arrive(gateway)
    assert await refused(other.ask("table.join", name="x")) == "bad_request"
    taken = other.ask("table.join", table=opened["table"], name="x", seat=2)
    assert await refused(taken) == "seat_occupied"
    assert await refused(other.ask("table.join", table="0" * 32, name="x")) == "unknown_table"
    assert await refused(other.ask("table.join", table="elsewhere", name="x")) == "unknown_table"


@pytest.mark.parametrize(
    "rules",
    [{"a": None}, {"a": 1.5}, {"A": 1}, {"preset": "chess"}, {"a": "\x07"}, {"deck": ["As", "As"]}],
)
async def test_rules_that_cannot_be_kept_are_refused(gateway, arrive, rules) -> None:
    host = await arrive(gateway)
    assert await refused(host.ask("table.open", rules=rules)) == "bad_request"


async def test_a_whole_round(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=2)
    host, (ann, bob) = table.host, table.players
    begun = await host.ask("round.open", entropy="house", commit_ms=500)
    assert (begun["round"], begun["version"], len(begun["commitment"])) == (1, 4, 64)
    assert (await host.ask("deck.shuffle"))["k"] == 0
    assert (await host.ask("deck.cut", at=20))["version"] > 50
    await host.ask("deck.burn")
    dealt = await host.ask("deck.deal", each=3)
    assert dealt["dealt"] == 6
    drawn = await ann.ask("deck.draw", count=2)
    assert set(drawn["cards"]) <= set(STANDARD)
    first, second = drawn["cards"]
    bottom = await bob.ask("deck.draw", from_="bottom")
    assert len(bottom["cards"]) == 1
    await ann.ask("hand.discard", cards=[first])
    await ann.ask("hand.play", cards=[second])
    state = (await bob.ask("table.state"))["state"]
    assert [0, second] not in state["round"]["cards"]
    assert second in [card for _, card, *_ in state["round"]["cards"]]
    await bob.ask("hand.give", cards=bottom["cards"], to=1)
    await ann.ask("hand.show", cards=bottom["slots"])
    await ann.ask("hand.show", cards=[dealt_to(ann)[0]], to=2)
    await ann.ask("hand.return", cards=bottom["cards"], where="bottom")
    await bob.ask("deck.return", count=1)
    back = await ann.ask("pile.draw", pile="discard")
    assert back["cards"] == [first]
    await ann.ask("pile.move", from_="hand", to="mine", cards=[first], face="up")
    await ann.ask("pile.move", pile="mine", to="deck", where=0)
    await ann.ask("pile.move", from_="deck", to="mine", count=3)
    assert (await host.ask("pile.shuffle", pile="mine"))["k"] == 1
    assert len((await ann.ask("pile.draw", pile="pile:mine", from_="random"))["cards"]) == 1
    await ann.ask("pile.turn", pile="mine")
    closed = await host.ask("round.close")
    assert (closed["round"], len(closed["secret"])) == (1, 128)
    await host.ask("table.close")
    assert await refused(host.ask("round.open")) == "table_closed"
    await bob.seen(closed["version"] + 1)
    assert bob.versions == list(range(4, closed["version"] + 2))


def dealt_to(guest) -> list[str]:
    return [event["private"]["card"] for event in guest.events if "private" in event]


async def test_players_bring_entropy(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=2)
    await table.host.ask("round.open", deck={"decks": 2, "jokers": 1})
    await promise(table)
    assert (await table.host.ask("deck.shuffle"))["k"] == 0
    await reveal(table)
    ann = table.players[0]
    drawn = await ann.ask("deck.draw")
    assert drawn["cards"][0] in build(decks=2, jokers=1)
    types = [event["type"] for event in ann.events]
    assert types.count("EntropyRevealed") == 2
    assert types[-1] == "CardDrawn"
    sizes = [note["size"] for note in ann.notices("checkpoint")]
    kinds = {event["version"]: event["type"] for event in ann.events}
    assert [kinds[size] for size in sizes] == ["EntropyClosed", "DeckSealed"]


async def test_a_random_draw_waits_for_the_players(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=2)
    await table.host.ask("round.open")
    await promise(table)
    ann = table.players[0]
    drawing = ann.send("deck.draw", from_="random", count=2, cmd="r")
    await ann.until(lambda: "EntropyClosed" in [event["type"] for event in ann.events])
    assert await refused(ann.ask("deck.draw", cmd="s")) == "shuffle_running"
    await reveal(table)
    drawn = await drawing
    assert len(drawn["cards"]) == len(drawn["slots"]) == 2
    assert await ann.ask("deck.draw", from_="random", count=2, cmd="r") == drawn


async def test_refusals_of_the_game(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=1, seats=1)
    host, (ann,) = table.host, table.players
    assert await refused(ann.ask("deck.draw")) == "no_round"
    assert await refused(ann.ask("round.open")) == "not_entitled"
    assert await refused(host.ask("deck.draw")) == "not_your_seat"
    assert await refused(host.ask("hand.play", cards=["As"])) == "not_your_seat"
    late = await arrive(gateway)
    assert await refused(late.ask("table.join", table=table.id, name="late")) == "table_full"
    assert await refused(late.ask("deck.draw", table=table.id)) == "not_your_seat"
    await host.ask("round.open", entropy="house")
    assert await refused(host.ask("round.open")) == "round_open"
    assert await refused(ann.ask("deck.draw")) == "not_sealed"
    await host.ask("deck.shuffle")
    assert await refused(ann.ask("deck.draw", count=53)) == "deck_empty"
    assert await refused(ann.ask("hand.discard", cards=["As"])) == "card_not_in_hand"
    assert await refused(ann.ask("pile.draw", pile="discard", cards=[3])) == "card_not_there"
    assert await refused(host.ask("deck.cut", at=99)) == "bad_place"
    assert await refused(ann.ask("pile.move", to="deck")) == "bad_request"
    assert await refused(ann.ask("entropy.commit", round=1, k=0, digest="0" * 64)) == (
        "entropy_out_of_turn"
    )
    assert await refused(ann.ask("deck.steal")) == "-32601"
    assert await refused(ann.ask("deck.draw", count="all")) == "-32602"
    assert await refused(ann.ask("table.cosign", cosignature="nonsense")) == "bad_request"


async def test_an_invitation_is_needed_where_the_rules_say_so(gateway, arrive) -> None:
    host = await arrive(gateway)
    opened = await host.ask("table.open", rules={"join": "invite", "watch": "nobody"})
    table = opened["table"]
    guest = await arrive(gateway)
    assert await refused(guest.ask("table.join", table=table, name="x")) == "not_entitled"
    wrong = guest.ask("table.join", table=table, name="x", invite="0" * 32)
    assert await refused(wrong) == "not_entitled"
    for method in ("table.watch", "table.state", "audit.bundle"):
        assert await refused(guest.ask(method, table=table)) == "not_entitled"
    await guest.ask("table.join", table=table, name="x", invite=opened["invite"])
    assert (await guest.ask("table.state"))["version"] == 2
    assert (await host.ask("table.watch"))["version"] == 2


async def test_a_token_makes_another_connection_act(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2)
    other = await arrive(gateway)
    assert await refused(other.ask("deck.draw", table=table.id, token="host.x")) == "bad_token"
    drawn = await other.ask("deck.draw", table=table.id, token=table.tokens[0])
    assert len(drawn["cards"]) == 1
    assert len((await other.ask("deck.draw"))["cards"]) == 1
    mixed = other.ask("deck.draw", token=table.tokens[1])
    assert await refused(mixed) == "bad_request"
    await other.ask("deck.deal", token=table.host_token)
    assert not other.told, "who only acts is not told of events"


async def test_a_seat_that_was_left_is_nobodys(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2)
    ann, bob = table.players
    left = await ann.ask("table.leave")
    assert await refused(ann.ask("deck.draw", table=table.id)) == "not_your_seat"
    resuming = ann.ask("table.resume", table=table.id, token=table.tokens[0], after=0)
    assert await refused(resuming) == "bad_token"
    await bob.seen(left["version"])
    assert bob.events[-1]["type"] == "SeatLeft"
    carol = await arrive(gateway)
    assert (await carol.ask("table.join", table=table.id, name="Carol"))["seat"] == 1
    other = await arrive(gateway)
    assert await refused(other.ask("deck.draw", table=table.id, token=table.tokens[0])) == (
        "bad_token"
    )


async def test_a_command_is_carried_out_once(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2)
    ann, bob = table.players
    first, again = await asyncio.gather(
        ann.send("deck.draw", cmd="a"), ann.send("deck.draw", cmd="a")
    )
    assert first == again
    assert await refused(ann.ask("deck.draw", cmd="a", count=2)) == "command_reused"
    assert (await bob.ask("deck.draw", cmd="a"))["cards"] != first["cards"]
    fresh = await arrive(gateway)
    token = table.tokens[0]
    assert await fresh.ask("deck.draw", table=table.id, token=token, cmd="a") == first


async def test_a_new_player_in_a_seat_gets_none_of_the_old_ones_answers(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    (ann,) = table.players
    first = await ann.ask("deck.draw", cmd="1")
    await ann.ask("table.leave")
    carol = await arrive(gateway)
    await carol.ask("table.join", table=table.id, name="Carol")
    assert (await carol.ask("deck.draw", cmd="1"))["cards"] != first["cards"]


async def test_expect_refuses_what_was_decided_on_an_older_table(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    (ann,) = table.players
    version = (await ann.ask("table.state"))["version"]
    first = await ann.ask("deck.draw", expect=version, cmd="a")
    assert await refused(ann.ask("deck.draw", expect=version)) == "conflict"
    assert await ann.ask("deck.draw", expect=version, cmd="a") == first
    assert await refused(ann.ask("table.leave", expect=version)) == "conflict"


async def test_joining_again_after_the_answer_was_lost(gateway, arrive) -> None:
    host = await arrive(gateway)
    table = (await host.ask("table.open"))["table"]
    cmd = str(uuid.uuid4())
    first = await arrive(gateway)
    joined = await first.ask("table.join", table=table, name="Ann", cmd=cmd)
    assert await first.ask("table.join", table=table, name="Ann", cmd=cmd) == joined
    second = await arrive(gateway)
    again = await second.ask("table.join", table=table, name="Ann", cmd=cmd)
    assert (again["seat"], again["token"]) == (joined["seat"], joined["token"])
    assert await first.gone() == 4409
    other = second.ask("table.open", cmd=cmd)
    assert await refused(other) == "command_reused"


async def test_an_id_that_can_be_guessed_hands_nobody_anothers_seat(gateway, arrive) -> None:
    host = await arrive(gateway)
    table = (await host.ask("table.open", cmd="1"))["table"]
    first, second = await arrive(gateway), await arrive(gateway)
    one = await first.ask("table.join", table=table, name="Ann", cmd="1")
    two = await second.ask("table.join", table=table, name="Ann", cmd="1")
    assert one["seat"] != two["seat"]
    assert (await second.ask("table.open", cmd="2"))["table"] != table
    assert await first.ask("table.join", table=table, name="Ann", cmd="1") == one
    assert await refused(first.ask("table.join", table=table, name="Eve", cmd="1")) == (
        "command_reused"
    )


async def test_opening_again_after_the_answer_was_lost(gateway, arrive) -> None:
    first, second = await arrive(gateway), await arrive(gateway)
    cmd = str(uuid.uuid4())
    opened = await first.ask("table.open", name="t", cmd=cmd)
    assert await second.ask("table.open", name="t", cmd=cmd) == opened
    assert await refused(second.ask("table.open", name="u", cmd=cmd)) == "command_reused"


async def test_a_request_without_an_id_is_carried_out_and_not_answered(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    (ann,) = table.players
    before = len(ann.frames)
    await ann.say('{"jsonrpc":"2.0","method":"deck.draw"}')
    await ann.say('{"jsonrpc":"2.0","method":"deck.draw","params":{"count":99}}')
    await ann.say('{"jsonrpc":"2.0","method":"deck.steal"}')
    await ann.ask("ping")
    await ann.until(lambda: ann.events[-1]["type"] == "CardDrawn")
    assert len(ann.frames) == before + 2


async def test_requests_sent_one_behind_the_other_are_carried_out_in_order(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    fresh = await arrive(gateway, path=f"/ws/{table.id}")
    frames = [
        {"id": 1, "method": "table.join", "params": {"name": "Zoe"}},
        {"id": 2, "method": "deck.draw"},
        {"id": 3, "method": "table.state"},
        {"id": 4, "method": "table.leave"},
        {"id": 5, "method": "deck.draw"},
    ]
    for frame in frames:
        await fresh.say(json.dumps({"jsonrpc": "2.0", "params": {}} | frame))
    await fresh.until(lambda: len(fresh.notices("answer")) == 5)
    answers = fresh.notices("answer")
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5]
    assert len(answers[1]["result"]["cards"]) == 1
    assert answers[4]["error"]["data"]["reason"] == "not_your_seat"


async def test_session_methods(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2)
    ann = table.players[0]
    standing = (await ann.ask("session.refresh"))["tables"]
    assert [(one["table"], one["seat"]) for one in standing] == [(table.id, 1)]
    assert (await ann.ask("ping"))["at"] > 1_600_000_000_000
    bundle = await ann.ask("audit.bundle")
    assert bundle["url"] == f"/tables/{table.id}/bundle.jsonl"
    assert (await ann.ask("session.hello"))["server"]["protocol"] == "dealer.v1"
    watching = await arrive(gateway)
    assert await watching.ask("table.watch", table=table.id)
    left = await watching.ask("table.leave", table=table.id)
    assert left["version"] == bundle["version"]
    assert (await watching.ask("session.refresh"))["tables"] == []


@pytest.mark.parametrize(
    "deck",
    [{"decks": "2"}, {"decks": [1]}, {"decks": True}, {"jokers": "1"}, {"cards": 5}, {"cards": {}}],
)
async def test_a_deck_in_the_rules_has_the_form_of_any_deck(gateway, arrive, deck) -> None:
    host = await arrive(gateway)
    assert await refused(host.ask("table.open", rules={"deck": deck})) == "bad_request"
