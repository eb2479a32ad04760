"""Deliveries: complete, in order, through failures, restarts and changes by operators."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from dealer.errors import ConfigurationError, DatabaseUnavailable, HouseKeyError
from dealer.eventlog import Log
from dealer.eventlog import services as stored
from dealer.eventlog.keys import existing_house_keys, load_house_keys
from dealer.eventlog.protocols import Connection
from dealer.eventlog.services import StoredWebhook, stored_webhooks
from dealer.game.commands import Actor, Draw
from dealer.service import LiveTable, Service
from dealer.service.identity.admin import read_journal
from dealer.service.operations.key_rotation import rotate
from dealer.service.operations.webhooks import WebhookAdmin
from dealer.service.service import ServiceOptions
from dealer.webhooks import requests, runner
from tests.gateway.rpc_client import eventually
from tests.harness.service_keys import add_key, give_table, revoke_key
from tests.service.tables import shuffled_table
from tests.webhooks.conftest import OpenService
from tests.webhooks.receiver import Received, Receiver, answer, flood, hang

pytestmark = pytest.mark.slow


async def add_webhook(service: Service, url: str, **settings: Any) -> tuple[int, str]:
    """A webhook of the key `shop`, which is made if it is missing."""
    if not service.service_keys.any_reads():
        await add_key(service, "shop", settings.pop("rights", "admin"))
    given: dict[str, Any] = {
        "key": "shop",
        "types": (),
        "signing": "hmac",
        "after": "start",
        "why": "",
    }
    given |= {"allow_private": True} | settings
    keys = service.keys
    return await WebhookAdmin(service.log, who="test").add(keys, url, **given)


async def webhook_of(service: Service) -> StoredWebhook:
    (found,) = await stored_webhooks(service.log)
    return found


def versions(receiver: Receiver) -> dict[str, list[int]]:
    """The versions of each table in the order of their first delivery."""
    found: dict[str, list[int]] = defaultdict(list)
    for event in receiver.events:
        data = event["data"]
        if data["version"] not in found[data["table"]]:
            found[data["table"]].append(data["version"])
    return dict(found)


async def until_complete(service: Service, receiver: Receiver, *tables: LiveTable) -> None:
    """Wait until every version was delivered; they were in order."""
    wanted = {table.table_id: list(range(1, table.committed + 1)) for table in tables}
    await eventually(lambda: {k: sorted(v) for k, v in versions(receiver).items()} == wanted)
    assert versions(receiver) == wanted


async def test_every_event_is_delivered_in_order(
    open_node: OpenService, receiver: Receiver
) -> None:
    service = await open_node(ServiceOptions(house="cards.example.org"))
    first, second = await shuffled_table(service), await shuffled_table(service)
    _, secret = await add_webhook(service, receiver.url)
    await until_complete(service, receiver, first, second)
    for table in (first, second, first):
        await service.execute(table, Draw(Actor(seat=1)))
    await until_complete(service, receiver, first, second)
    request = receiver.requests[-1]
    assert request.headers["content-type"] == "application/cloudevents+json"
    event = Webhook(secret).verify(request.body, request.headers)
    assert event["id"] == request.headers["webhook-id"]
    assert event["source"] == f"https://cards.example.org/tables/{event['subject']}"
    assert len(receiver.requests) == first.committed + second.committed
    await eventually(lambda: service.webhooks.counts.delivered)


async def test_only_what_the_key_may_read(open_node: OpenService, receiver: Receiver) -> None:
    service = await open_node()
    mine, _ = await shuffled_table(service), await shuffled_table(service)
    await give_table(service.log, mine.table_id, key=1)
    await add_webhook(service, receiver.url, rights="read", types=("SeatTaken", "DeckSealed"))
    await eventually(lambda: len(receiver.requests) == 3)
    assert {event["data"]["table"] for event in receiver.events} == {mine.table_id}
    assert [event["type"] for event in receiver.events] == [
        "dealer.SeatTaken", "dealer.SeatTaken", "dealer.DeckSealed",
    ]  # fmt: skip


@pytest.mark.parametrize("respond", [answer(500), answer(302, more="Location: /\r\n"), hang])
async def test_failures_are_repeated(
    open_node: OpenService, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, respond: Any
) -> None:
    monkeypatch.setattr(requests, "DEADLINE_SECONDS", 0.2)
    receiver.respond = respond
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_webhook(service, receiver.url)
    await eventually(lambda: service.webhooks and service.webhooks.failing)
    failing = await webhook_of(service)
    assert failing.problem
    assert failing.position == "start"
    receiver.requests.clear()
    receiver.respond = answer()
    await until_complete(service, receiver, live_table)
    await eventually(lambda: service.webhooks and not service.webhooks.failing)


async def test_a_receiver_that_fails_one_request_in_twenty(
    open_node: OpenService, receiver: Receiver
) -> None:
    """Nothing waits for what failed but its table, and the webhook is not said to fail."""
    refused = 0

    async def respond(request: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal refused
        fails = len(receiver.requests) % 20 == 0
        refused += fails
        await answer(503 if fails else 204)(request, writer)

    receiver.respond = respond
    service = await open_node()
    tables = [await shuffled_table(service) for _ in range(6)]
    await add_webhook(service, receiver.url)
    await until_complete(service, receiver, *tables)
    events = sum(table.committed for table in tables)
    assert refused > 10
    await eventually(lambda: service.webhooks.counts.delivered == events)
    assert len(receiver.requests) == events + refused, "only what was refused is sent again"
    await eventually(lambda: not service.webhooks.failing)
    async with asyncio.timeout(30):  # the row follows what the node knows
        while (await webhook_of(service)).failing_since is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert service.webhooks.lag_seconds == 0


async def test_a_table_that_is_refused_keeps_no_other(
    open_node: OpenService, receiver: Receiver
) -> None:
    """Its first event is the oldest of the feed; the others are read and sent past it."""

    async def respond(request: Received, writer: asyncio.StreamWriter) -> None:
        poison = request.event["subject"] == refused.table_id
        await answer(422 if poison else 204)(request, writer)

    receiver.respond = respond
    service = await open_node()
    refused = await shuffled_table(service)
    others = [await shuffled_table(service) for _ in range(3)]
    await add_webhook(service, receiver.url)
    events = sum(table.committed for table in others)
    await eventually(lambda: service.webhooks.counts.delivered == events)
    assert service.webhooks.lag_seconds > 0
    stored = await webhook_of(service)
    assert stored.position == "start"
    await eventually(partial(_at_least, receiver, len(receiver.requests) + 1))
    receiver.respond = answer()
    await until_complete(service, receiver, refused, *others)


async def test_a_receiver_that_dies_and_returns(open_node: OpenService, receiver: Receiver) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_webhook(service, receiver.url)
    for count in range(10, 60, 10):
        await eventually(partial(_at_least, receiver, count))
        await receiver.stop()
        await service.execute(live_table, Draw(Actor(seat=1)))
        await receiver.start()
    await until_complete(service, receiver, live_table)


def _at_least(receiver: Receiver, count: int) -> bool:
    return len(receiver.requests) >= count


async def test_an_interruption_that_lasts_is_logged_once(
    open_node: OpenService,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each look claims the webhook again and meets the same, until the database is whole."""
    service = await open_node()
    live_table = await shuffled_table(service)
    reader, read, attempts = service.feed.reader, service.feed.reader.read, 0

    async def fails(*_: object, **__: object) -> None:
        nonlocal attempts
        attempts += 1
        raise DatabaseUnavailable("The database is away.")

    def logged() -> list[object]:
        return [one for one in caplog.records if one.message == "webhook delivery interrupted"]

    monkeypatch.setattr(reader, "read", fails)
    await add_webhook(service, receiver.url)
    await eventually(lambda: attempts > 2)
    assert len(logged()) == 1
    monkeypatch.setattr(reader, "read", read)
    await until_complete(service, receiver, live_table)
    before = attempts
    monkeypatch.setattr(reader, "read", fails)
    await eventually(lambda: attempts > before + 1)
    assert len(logged()) == 1  # in this minute


async def test_a_hostile_answer_is_an_answer(open_node: OpenService, receiver: Receiver) -> None:
    receiver.respond = flood
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_webhook(service, receiver.url, types=("TableOpened", "DeckSealed"))
    await eventually(lambda: len(receiver.requests) == 2)
    assert [event["data"]["version"] for event in receiver.events] == [1, live_table.committed]


async def test_a_receiver_that_is_gone_is_switched_off(
    open_node: OpenService, receiver: Receiver
) -> None:
    receiver.respond = answer(410)
    service = await open_node()
    live_table = await shuffled_table(service)
    number, _ = await add_webhook(service, receiver.url)
    await eventually(lambda: service.webhooks and service.webhooks.disabled)
    (line,) = await read_journal(service.log, limit=1)
    assert (line.what, line.target) == ("disable-webhook", f"webhook {number}")
    assert "410" in (await webhook_of(service)).problem
    receiver.respond = answer()
    assert await WebhookAdmin(service.log, who="test").enable(number, why="")
    await until_complete(service, receiver, live_table)
    assert (await webhook_of(service)).disabled_at is None


async def test_after_days_of_failures_it_is_switched_off(
    open_node: OpenService, receiver: Receiver
) -> None:
    receiver.respond = answer(503)
    service = await open_node(ServiceOptions(webhook_give_up_ms=50))
    await shuffled_table(service)
    await add_webhook(service, receiver.url)
    await eventually(lambda: service.webhooks and service.webhooks.disabled)
    assert len(receiver.requests) > 1


async def test_a_node_claims_no_position_that_another_node_has_moved(
    open_node: OpenService, receiver: Receiver
) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    number, _ = await add_webhook(service, receiver.url)
    before = (await webhook_of(service)).position
    await until_complete(service, receiver, live_table)

    def claims(connection: Connection) -> list[bool]:
        """Of a node that read the webhook before it was moved, and of one after that."""
        connection.exec_driver_sql("UPDATE webhook SET owner = NULL, lease = 0, position = 'moved'")
        return [
            stored.claim_webhook(connection, number, owner, position)
            for owner, position in ((b"early...", before), (b"now.....", "moved"))
        ]

    assert await service.log.run_in_transaction(claims) == [False, True]


async def test_a_replay_delivers_again(open_node: OpenService, receiver: Receiver) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    number, _ = await add_webhook(service, receiver.url)
    await until_complete(service, receiver, live_table)
    receiver.requests.clear()
    assert await WebhookAdmin(service.log, who="test").replay(number, "start", why="")
    await until_complete(service, receiver, live_table)


async def test_a_removed_webhook_gets_nothing(open_node: OpenService, receiver: Receiver) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    number, _ = await add_webhook(service, receiver.url)
    await until_complete(service, receiver, live_table)
    admin = WebhookAdmin(service.log, who="test")
    assert await admin.remove(number, why="")
    assert not await admin.remove(number, why="")
    await eventually(lambda: not _running(service))
    assert await stored_webhooks(service.log) == []


async def test_after_its_key_is_revoked_nothing_is_delivered(
    open_node: OpenService, receiver: Receiver
) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_key(service, "other", "read")  # the feed goes on
    await add_key(service, "shop", "admin")
    await add_webhook(service, receiver.url)
    await until_complete(service, receiver, live_table)
    await revoke_key(service, at_once=False)
    await eventually(lambda: not _running(service))
    count = len(receiver.requests)
    await service.execute(live_table, Draw(Actor(seat=1)))
    await service.feed.scheduler.up_to_date()
    assert len(receiver.requests) == count


def _running(service: Service) -> list[object]:
    assert service.webhooks is not None
    return [task for task in service.webhooks._tasks.values() if not task.done()]


async def test_one_node_delivers_and_another_takes_over(
    open_node: OpenService, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_node(), await open_node()
    live_table = await shuffled_table(one)
    await add_webhook(one, receiver.url)
    await two.service_keys.refresh(two.log)
    await until_complete(one, receiver, live_table)
    assert len(receiver.requests) == live_table.committed
    assert len(_running(one)) + len(_running(two)) == 1
    owner = one if _running(one) else two
    assert owner.webhooks is not None
    monkeypatch.setattr(stored, "LEASE_MS", 400)
    await one.execute(live_table, Draw(Actor(seat=1)))
    await until_complete(one, receiver, live_table)
    # The owner, whose lease is short now, stops without a word, like a process that was killed.
    monkeypatch.setattr(owner.webhooks, "_run", _never)
    monkeypatch.setattr(owner.webhooks, "_claim", _never)
    await one.execute(live_table, Draw(Actor(seat=1)))
    other = two if owner is one else one
    await eventually(lambda: _running(other))
    await until_complete(one, receiver, live_table)


async def _never(*_: object, **__: object) -> bool:
    await asyncio.Event().wait()
    return False


async def test_webhooks_of_a_later_release_do_not_stop_the_others(
    open_node: OpenService, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        # The first node delivers nothing, so that it cannot claim the webhooks before the change.
        patch.setattr(runner.WebhookRunner, "run", _never)
        first = await open_node()
    live_table = await shuffled_table(first)
    later, _ = await add_webhook(first, "http://127.0.0.1:1/later")
    unread, _ = await add_webhook(first, "http://127.0.0.1:1/unread")
    keys, nonce = first.keys, bytes(12)

    def change(connection: Connection) -> bool:
        execute = connection.exec_driver_sql
        execute("UPDATE webhook SET signing = 'v9' WHERE id = ?", (later,))
        secret = keys.seal_webhook(bytes(32), url="gopher://there", nonce=nonce)
        sql = "UPDATE webhook SET url = 'gopher://there', secret = ? WHERE id = ?"
        execute(sql, (secret, unread))
        return True

    await first.log.run_in_transaction(change)
    await add_webhook(first, receiver.url)
    second = await open_node()
    await until_complete(second, receiver, live_table)
    owners = {one.id: one.owner for one in await stored_webhooks(second.log)}
    assert (owners[later], owners[unread]) == (None, None), "they are left to nodes that know them"


async def test_a_drain_ends_deliveries(open_node: OpenService, receiver: Receiver) -> None:
    """Without a loop that never pauses, though nothing is waited for any more."""
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_webhook(service, receiver.url)
    await until_complete(service, receiver, live_table)
    service.feed.head.close()
    await eventually(lambda: not _running(service))


async def test_a_private_address_is_refused(open_node: OpenService, receiver: Receiver) -> None:
    service = await open_node()
    await shuffled_table(service)
    url = receiver.url.replace("http:", "https:")
    with pytest.raises(ConfigurationError, match="https"):
        await add_webhook(service, receiver.url, allow_private=False)
    await add_webhook(service, url, allow_private=False)
    await eventually(lambda: service.webhooks and service.webhooks.failing)
    assert (
        await webhook_of(service)
    ).problem == "127.0.0.1 has an address that is not public: 127.0.0.1."
    assert receiver.connections == 0


async def test_the_secret_survives_a_rotation(
    open_node: OpenService, receiver: Receiver, url: str, tmp_path: Path
) -> None:
    """It is encrypted again under the new key, so that the old one may be destroyed."""
    service = await open_node()
    await shuffled_table(service)
    await add_webhook(service, receiver.url)
    before = await webhook_of(service)
    assert len(before.secret) > 32
    await rotate(url, "test", "test", house_key=tmp_path / "house.key")
    after = await open_node()
    keys = after.keys
    secret, _ = keys.open_webhook(before.secret, url=before.url)
    async with asyncio.timeout(30):
        while (now := await webhook_of(after)).secret == before.secret:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert keys.open_webhook(now.secret, url=now.url) == (secret, True)


async def test_a_house_without_a_key_has_no_webhooks(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path / 'empty.db'}", tmp_path / "empty.db.key"
    async with await Log.open(url) as log:
        with pytest.raises(HouseKeyError):
            await existing_house_keys(log, file)
        keys = await load_house_keys(log, file, fresh=bytes(32))
        for wrong in ({"key": "shop"}, {"types": ("Drawn",)}, {"after": "57"}):
            given: dict[str, Any] = {
                "key": "shop", "types": (), "signing": "hmac", "after": "start", "why": "",
                "allow_private": False,
            } | wrong  # fmt: skip
            with pytest.raises(ConfigurationError):
                await WebhookAdmin(log, who="test").add(keys, "https://shop.example.org/", **given)
