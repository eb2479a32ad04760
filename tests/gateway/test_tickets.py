"""Tickets and JWTs: each gives its user one seat at a table, on any device and at any node."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from dealer.errors import Unavailable
from dealer.eventlog import seat_subjects
from dealer.feed.pages import FeedFilter
from dealer.gateway import Gateway
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.identity import Issuer
from dealer.service.clock import utc_ms
from tests.gateway.conftest import Connect, OpenGateway
from tests.gateway.issuer import AUDIENCE, IssuerServer, issuer_server, token
from tests.gateway.rpc_client import Refusal, RpcClient, reason_of
from tests.harness.service_keys import add_key, revoke_key, with_key
from tests.service.tables import bundle_of

HOUR_MS = 3_600_000


@pytest.fixture
async def shop(service: Any, gateway: Gateway, connect: Connect) -> RpcClient:
    """A service's connection."""
    return await connect(**with_key(await add_key(service)))


@pytest.fixture
async def table(shop: RpcClient) -> str:
    opened = await shop.call("table.open", rules={"join": "invite"}, seats=4)
    return str(opened["table"])


async def ticket(shop: RpcClient, table: str, name: str = "Ada", **more: Any) -> str:
    return str((await shop.call("seat.ticket", table=table, name=name, **more))["ticket"])


async def test_a_ticket_gives_the_seat_that_it_names(shop, table, connect) -> None:
    before = utc_ms()
    made = await shop.call("seat.ticket", table=table, name="Ada", seat=3, bot=True)
    assert before + HOUR_MS <= made["expires_at"] <= utc_ms() + HOUR_MS
    ada = await connect()
    joined = await ada.call("table.join", table=table, ticket=made["ticket"])
    assert joined["seat"] == 3
    assert joined["state"]["seats"] == [{"bot": True, "name": "Ada", "seat": 3, "since": 2}]
    again = await connect()
    assert await again.call("table.resume", table=table, token=joined["token"], after=0)


async def test_a_ticket_without_a_seat_is_for_any(shop, table, connect) -> None:
    one, two = await ticket(shop, table), await ticket(shop, table, "Bob", seat=1)
    ada, bob = await connect(), await connect()
    assert await reason_of(bob.call("table.join", table=table, ticket=two, seat=2)) == "bad_request"
    assert (await ada.call("table.join", table=table, ticket=one, seat=2))["seat"] == 2
    assert (await bob.call("table.join", table=table, ticket=two))["seat"] == 1


async def test_a_ticket_is_for_one_use(shop, table, connect) -> None:
    for number, more in enumerate(({}, {"subject": "user"})):
        given = await ticket(shop, table, f"name {number}", **more)
        cmd = str(uuid.uuid4())
        first, second, thief = [await connect() for _ in range(3)]
        joined = await first.call("table.join", table=table, ticket=given, cmd=cmd)
        for other in ({}, {"cmd": "1"}, {"cmd": str(uuid.uuid4())}, {"cmd": cmd, "seat": 4}):
            refused = thief.call("table.join", table=table, ticket=given, **other)
            assert await reason_of(refused) == "ticket_used"
        # Its own request, whose answer may have been lost, is answered again.
        again = await second.call("table.join", table=table, ticket=given, cmd=cmd)
        assert (again["seat"], again["token"]) == (joined["seat"], joined["token"])
        await second.call("table.leave")
        refused = thief.call("table.join", table=table, ticket=given, cmd=cmd)
        assert await reason_of(refused) == "bad_token"


async def test_a_guessable_command_id_does_not_repeat_a_tickets_use(shop, table, connect) -> None:
    given, first, thief = await ticket(shop, table), await connect(), await connect()
    await first.call("table.join", table=table, ticket=given, cmd="1")
    refused = thief.call("table.join", table=table, ticket=given, cmd="1")
    assert await reason_of(refused) == "ticket_used"


async def test_tickets_used_at_the_same_time_give_one_seat(shop, table, connect) -> None:
    for more in ({}, {"subject": "user"}):
        given = await ticket(shop, table, f"name {more}", **more)
        clients = [await connect() for _ in range(6)]
        joining = [client.call("table.join", table=table, ticket=given) for client in clients]
        outcomes = await asyncio.gather(*joining, return_exceptions=True)
        refused = [one.reason for one in outcomes if isinstance(one, Refusal)]
        assert refused == ["ticket_used"] * 5
    state = (await shop.call("table.state", table=table))["state"]
    assert len(state["seats"]) == 2


async def test_a_refused_join_does_not_use_the_ticket(shop, table, connect) -> None:
    for more in ({}, {"subject": "user"}):
        name = f"Ada {more}"
        given = await ticket(shop, table, name, **more)
        rival, ada = await connect(), await connect()
        await rival.call("table.join", table=table, ticket=await ticket(shop, table, name))
        assert await reason_of(ada.call("table.join", table=table, ticket=given)) == "name_taken"
        with pytest.raises(Refusal, match=re.escape(f'such as "{name.upper()} 2"')):
            await ada.call("table.join", table=table, ticket=given, name=name.upper())
        await rival.call("table.leave")
        assert await ada.call("table.join", table=table, ticket=given)


async def test_where_the_name_of_a_ticket_is_taken_the_name_of_the_join_counts(
    shop, table, connect
) -> None:
    for name, given in (("Chris", "Chris"), ("Chris", "Kit"), ("Dan", "Kit")):
        client = await connect()
        joined = await client.call(
            "table.join", table=table, ticket=await ticket(shop, table, name), name=given
        )
    assert [seat["name"] for seat in joined["state"]["seats"]] == ["Chris", "Kit", "Dan"]


async def subjects(shop: RpcClient, table: str, **params: Any) -> dict[str, str | None]:
    """The service's own id of each player, by name."""
    state = (await shop.call("table.state", table=table, **params))["state"]
    return {seat["name"]: seat.get("subject") for seat in state["seats"]}


async def feed_subjects(gateway: Gateway, key: int | None) -> list[str | None]:
    """The id of the player in each SeatTaken of the feed of a key; None for one with `admin`."""
    feed = gateway.context.service.feed
    await feed.scheduler.up_to_date()
    page = await feed.reader.read(await feed.place("start"), FeedFilter(key))
    objects = [json.loads(entry.text) for entry in page.entries]
    assert not any("subject" in one for one in objects if one["type"] != "SeatTaken")
    return [one.get("subject") for one in objects if one["type"] == "SeatTaken"]


async def test_a_service_sees_its_own_ids_of_its_users(
    service, gateway, shop, table, connect
) -> None:
    odd = '\u00fc \u2028\n"\\ 4711'
    ada, bob, cleo = [await connect() for _ in range(3)]
    await ada.call("table.join", table=table, ticket=await ticket(shop, table, subject=odd))
    await bob.call("table.join", table=table, ticket=await ticket(shop, table, "Bob"))
    invite = service.tokens.of(service.tables.get(table).table.key).invite(bytes.fromhex(table))
    await cleo.call("table.join", table=table, name="Cleo", invite=invite)
    at_first = {"Ada": odd, "Bob": None, "Cleo": None}
    assert await subjects(shop, table) == at_first
    # The player moves, leaves, and comes back.
    await ada.call("seat.move", to=4)
    version = (await ada.call("seat.move", to=1))["version"]
    assert await subjects(shop, table) == at_first
    await ada.call("table.leave")
    await ada.call("table.join", table=table, ticket=await ticket(shop, table, subject=odd))
    assert await subjects(shop, table) == at_first
    assert await subjects(shop, table, at=version) == at_first
    expected = [odd, None, None, odd, odd, odd]
    assert await feed_subjects(gateway, 1) == expected
    service.feed.subjects.forget()
    assert await feed_subjects(gateway, 1) == expected
    assert await subjects(bob, table) == dict.fromkeys(at_first)  # a player's
    assert not any("4711" in line for line in await bundle_of(service, service.tables.get(table)))


async def test_a_key_sees_only_the_ids_that_it_gave(service, gateway, shop, table, connect) -> None:
    admin = await connect(**with_key(await add_key(service, "admin", "admin")))
    ada, bob = await connect(), await connect()
    await ada.call("table.join", table=table, ticket=await ticket(shop, table, subject="1"))
    await bob.call("table.join", table=table, ticket=await ticket(admin, table, "Bob", subject="1"))
    assert await subjects(shop, table) == {"Ada": "1", "Bob": None}
    assert await subjects(admin, table) == {"Ada": "1", "Bob": "1"}
    assert await feed_subjects(gateway, 1) == ["1", None]
    assert await feed_subjects(gateway, None) == ["1", "1"]


async def test_the_id_of_a_user_is_stored_before_the_seat_is_taken(
    service, gateway, shop, table, connect, monkeypatch
) -> None:
    """A node that stops after the event leaves it with its subject, and another finds it."""
    given, ada = await ticket(shop, table, subject="4711"), await connect()

    store, versions = seat_subjects.record_subject, []

    def record_subject(*args: Any) -> None:
        versions.append(service.tables.get(table).table.version)
        store(*args)

    def stop(*_: Any, **__: Any) -> None:
        raise Unavailable("The server is closing.")

    with monkeypatch.context() as patch:
        patch.setattr(seat_subjects, "record_subject", record_subject)
        patch.setattr(seat_subjects, "record", stop)
        assert await reason_of(ada.call("table.join", table=table, ticket=given)) == "unavailable"
    assert versions == [1]
    assert await feed_subjects(gateway, 1) == ["4711"]
    assert await subjects(shop, table) == {"Ada": "4711"}


async def test_tickets_end_with_the_key_that_made_them(service, shop, table, connect) -> None:
    used, unused = await ticket(shop, table), await ticket(shop, table, "Bob")
    ada, bob = await connect(), await connect()
    joined = await ada.call("table.join", table=table, ticket=used)
    await revoke_key(service)
    assert await reason_of(bob.call("table.join", table=table, ticket=unused)) == "bad_token"
    again = await connect()
    assert await again.call("table.resume", table=table, token=joined["token"], after=0)


async def test_invalid_tickets_are_refused_and_logged_nowhere(
    service, gateway, shop, table, connect, caplog
) -> None:
    caplog.set_level(logging.DEBUG)
    other = (await shop.call("table.open"))["table"]
    good = await ticket(shop, table)
    now, service.tickets._now = service.tickets._now, lambda: utc_ms() - 2 * HOUR_MS
    old = await ticket(shop, table)
    service.tickets._now = now
    flipped = good[:-4] + ("A" if good[-4] != "A" else "B") + good[-3:]
    cases = {
        flipped: "bad_token",
        good[:-1]: "bad_token",
        good + "A": "bad_token",
        good.removeprefix("dt_"): "bad_token",
        "dt_": "bad_token",
        "dt_" + "A" * 41: "bad_token",
        "": "bad_token",
        await ticket(shop, other): "bad_token",
        old: "ticket_expired",
    }
    client = await connect()
    for text, reason in cases.items():
        with pytest.raises(Refusal) as caught:
            await client.call("table.join", table=table, ticket=text)
        assert caught.value.reason == reason, text
        assert not text or text not in json.dumps(caught.value.error)
    assert (await shop.call("table.state", table=table))["state"]["seats"] == []
    assert await client.call("table.join", table=table, ticket=good)
    ours = (record for record in caplog.records if record.name.startswith("dealer"))
    logged = "\n".join(str(vars(record)) for record in ours)
    assert not any(text in logged for text in (*cases, good) if len(text) > 10)
    too_long = client.call("table.join", table=table, ticket="dt_" + "A" * 3_100)
    with pytest.raises(Refusal, match="ticket must have at most 3100 characters"):
        await too_long


async def test_a_ticket_needs_a_service_with_the_right_at_its_table(
    service, gateway, shop, table, connect
) -> None:
    host, stranger = await connect(), await connect(**with_key(await add_key(service, "other")))
    lacking = await connect(**with_key(await add_key(service, "reader", "open", "read")))
    own = (await lacking.call("table.open"))["table"]
    opened = await host.call("table.open")
    for client, where in ((host, opened["table"]), (stranger, table), (lacking, own)):
        refused = client.call("seat.ticket", table=where, name="Ada")
        assert await reason_of(refused) == "not_entitled"
    for wrong in ({"name": "\u200b"}, {"seat": 0}, {"seat": 5}):
        refused = shop.call("seat.ticket", **({"table": table, "name": "Ada"} | wrong))
        assert await reason_of(refused) == "bad_request"
    for wrong in ({"expires_s": 0}, {"expires_s": 30 * 86_400 + 1}, {"subject": "x" * 256}):
        with pytest.raises(Refusal, match="must"):
            await shop.call("seat.ticket", table=table, name="Ada", **wrong)
    await shop.call("table.close", table=table)
    assert await reason_of(shop.call("seat.ticket", table=table, name="Ada")) == "table_closed"


async def test_a_user_gets_the_same_seat_on_another_device(shop, table, connect) -> None:
    phone, laptop = await connect(), await connect()
    one = await ticket(shop, table, "Ada", subject="user 7", seat=2)
    first = await phone.call("table.join", table=table, ticket=one)
    two = await ticket(shop, table, "Ada again", subject="user 7", seat=4)
    again = await laptop.call("table.join", table=table, ticket=two)
    assert (again["seat"], again["token"], again["version"]) == (2, first["token"], 2)
    assert await phone.wait_closed() == CloseCode.SUPERSEDED
    other = await ticket(shop, table, "Bob", subject="user 8")
    bob = await connect()
    assert (await bob.call("table.join", table=table, ticket=other))["seat"] == 1


async def test_a_user_who_left_or_was_removed_takes_a_new_seat(shop, table, connect) -> None:
    tokens = []
    for number in range(3):
        client = await connect()
        given = await ticket(shop, table, f"Ada {number}", subject="user 7")
        joined = await client.call("table.join", table=table, ticket=given)
        tokens.append(joined["token"])
        assert len(joined["state"]["seats"]) == 1
        if number % 2:
            await client.call("table.leave")
        else:
            await shop.call("seat.vacate", table=table, seat=joined["seat"])
    assert len(set(tokens)) == 3


async def test_a_join_needs_one_of_name_ticket_and_jwt(shop, table, connect) -> None:
    client = await connect()
    with pytest.raises(Refusal, match="have no member name, ticket or jwt"):
        await client.call("table.join", table=table)
    with pytest.raises(Refusal, match="both ticket and jwt"):
        await client.call("table.join", table=table, ticket="a", jwt="b")
    assert await reason_of(client.call("table.join", table=table, jwt="b")) == "bad_request"


# JWTs


@pytest.fixture
def issuer() -> Iterator[IssuerServer]:
    with issuer_server() as running:
        yield running


@pytest.fixture
async def trusting(open_gateway: OpenGateway, issuer: IssuerServer) -> Gateway:
    clock = asyncio.get_running_loop().time
    return await open_gateway(issuer=Issuer(issuer.url, audience=AUDIENCE, keys=None, clock=clock))


async def test_a_jwt_gives_its_user_a_seat_under_the_name_of_its_claims(
    trusting, issuer, connect
) -> None:
    host = await connect(trusting)
    opened = await host.call("table.open", rules={"join": "invite"})
    table, invite = opened["table"], opened["invite"]
    phone, laptop = await connect(trusting), await connect(trusting)
    jwt = token(issuer.url, name="Ada L", preferred_username="ada")
    assert await reason_of(phone.call("table.join", table=table, jwt=jwt)) == "not_entitled"
    first = await phone.call("table.join", table=table, jwt=jwt, invite=invite, name="ignored")
    assert [seat["name"] for seat in first["state"]["seats"]] == ["Ada L"]
    # The seat is the user's already: no invitation is needed.
    again = await laptop.call("table.join", table=table, jwt=token(issuer.url, "ES256"))
    assert (again["token"], again["version"]) == (first["token"], first["version"])
    assert await phone.wait_closed() == CloseCode.SUPERSEDED


async def test_a_user_with_a_namesake_or_without_a_name(trusting, issuer, connect) -> None:
    table = (await (await connect(trusting)).call("table.open"))["table"]
    names = []
    for sub, claims, more in (
        ("1", {"name": "Ada", "preferred_username": "ada1"}, {}),
        ("2", {"name": "ada", "preferred_username": "ada2"}, {}),
        ("3", {}, {"name": "Bob"}),
    ):
        client = await connect(trusting)
        jwt = token(issuer.url, sub=sub, **claims)
        joined = await client.call("table.join", table=table, jwt=jwt, **more)
        names = [seat["name"] for seat in joined["state"]["seats"]]
    assert names == ["Ada", "ada2", "Bob"]
    same = token(issuer.url, sub="5", name="ada", preferred_username="ADA2")
    client = await connect(trusting)
    with pytest.raises(Refusal, match=r"give another one as .?name.?, such as .ADA2 2."):
        await client.call("table.join", table=table, jwt=same)
    with pytest.raises(Refusal, match='such as "bob 2"'):
        await client.call("table.join", table=table, jwt=same, name="bob")
    joined = await client.call("table.join", table=table, jwt=same, name="Ada of Kent")
    assert joined["state"]["seats"][-1]["name"] == "Ada of Kent"
    client = await connect(trusting)
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("4", {}, "bad_request"),
        ("4", {"name": "ADA"}, "name_taken"),
        ("4", {"name": "Dan", "exp": 1}, "bad_token"),
    ]
    for sub, others, reason in refused:
        jwt = token(issuer.url, sub=sub, **others)
        assert await reason_of(client.call("table.join", table=table, jwt=jwt)) == reason
    assert len((await client.call("table.state", table=table))["state"]["seats"]) == 4


async def test_a_tickets_user_is_not_the_one_of_a_jwt(service, trusting, issuer, connect) -> None:
    shop = await connect(trusting, **with_key(await add_key(service)))
    table = (await shop.call("table.open"))["table"]
    ada, eve = await connect(trusting), await connect(trusting)
    given = await ticket(shop, table, subject="ada")
    await ada.call("table.join", table=table, ticket=given)
    joined = await eve.call("table.join", table=table, jwt=token(issuer.url, sub="ada", name="Eve"))
    assert joined["seat"] == 2
