"""Ids of decks: unguessable, and neither in the database nor in the id of their table."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dealer.errors import CommandReused, UnknownTable
from dealer.gateway.wire.params import TableOpen
from dealer.service import IdempotencyKey, LiveTable, Service
from dealer.service.tables.decks import LENGTH, deck_key, new_deck_id
from dealer.service.tables.table_ids import id_and_key
from tests.service.bare_service import bare_service


def test_ids_are_of_small_letters_and_digits() -> None:
    ids = {new_deck_id() for _ in range(100)}
    assert len(ids) == 100
    assert {len(id) for id in ids} == {LENGTH}
    assert all(id.isalnum() and id == id.lower() for id in ids)


async def table_of(service: Service, deck: str) -> LiveTable:
    table, _ = await id_and_key(deck_key(deck), service.log, service.keys, now=service.now())
    return await service.lifecycle.load(table.hex())


async def test_a_deck_is_found_by_its_id_only(tmp_path: Path) -> None:
    id = new_deck_id()
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with bare_service(url) as service:
        opened, _ = await service.open_table({}, key=deck_key(id))
        assert await table_of(service, id) is opened
        with pytest.raises(UnknownTable):
            await table_of(service, new_deck_id())
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240
    assert opened.id in stored
    assert id.encode() not in stored


def test_no_client_can_send_the_command_id_of_a_deck() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"cmd": deck_key(new_deck_id()).cmd}, TableOpen)


async def test_no_request_of_a_client_repeats_the_opening_of_a_deck(service: Service) -> None:
    """The answer would have the host's token."""
    key = deck_key(new_deck_id())
    await service.open_table({}, key=key)
    sent = IdempotencyKey(key.scope, key.cmd, b'{"method":"table.open"}')
    with pytest.raises(CommandReused):
        await service.open_table({}, key=sent)
