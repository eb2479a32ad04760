"""Claims of tables by services, on each database; keys and their names."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest

from dealer.errors import ConcurrentUpdate, ConfigurationError
from dealer.game.commands import Actor, CloseTable
from dealer.projector.runner import Projector
from dealer.service import Service
from dealer.service.identity.admin import AdminService
from dealer.service.identity.service_keys import ServiceKey, check_key, digest_of, new_key
from dealer.service.identity.service_tables import Owner, ServiceTables, list_tables
from tests.service.conftest import OpenService

SHOP = ServiceKey(1, "shop", frozenset(("open", "read")))
OTHER = ServiceKey(2, "other", frozenset(("open",)))
ADMIN = ServiceKey(3, "ops", frozenset(("admin",)))


def new_table() -> bytes:
    return secrets.token_bytes(16)


async def test_the_first_claim_of_a_ref_is_that_of_all(open_service: OpenService) -> None:
    """With different ids, as of two nodes of which one does not have the new house key yet."""
    nodes = [(await open_service()).service_tables for _ in range(2)]
    for number in range(5):
        owner = Owner(1, f"match {number}")
        claims = [node.claim(new_table(), owner) for node in nodes for _ in range(3)]
        claimed = set(await asyncio.gather(*claims))
        assert len(claimed) == 1
        assert {await node.claim(new_table(), owner) for node in nodes} == claimed
    (other,) = {await node.claim(new_table(), Owner(2, "match 0")) for node in nodes}
    assert other not in claimed


async def test_tables_without_a_ref_are_of_their_keys(service: Service) -> None:
    tables = [new_table() for _ in range(3)]
    for table in tables:
        assert await service.service_tables.claim(table, Owner(1)) == table
        assert await service.service_tables.claim(table, Owner(1)) == table
    for known in (service.service_tables, ServiceTables(service.log)):
        assert [await known.owner(table) for table in tables] == [1, 1, 1]
        assert await known.owner(new_table()) is None


async def test_a_key_has_authority_at_its_own_tables(service: Service) -> None:
    own, of_players = new_table(), new_table()
    await service.service_tables.claim(own, Owner(SHOP.id))
    authority = service.service_tables.authority
    assert await authority(own, SHOP) is SHOP
    assert await authority(own, OTHER) is None
    assert await authority(of_players, SHOP) is None
    assert await authority(of_players, ADMIN) is ADMIN
    assert [ADMIN.may(right) for right in ("open", "seat", "read", "close")] == [True] * 4
    assert [SHOP.may(right) for right in ("open", "seat", "admin")] == [True, False, False]


async def test_the_number_of_owners_in_memory_is_bounded(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dealer.service.identity.service_tables.CACHED", 2)
    tables = [new_table() for _ in range(5)]
    for table in tables:
        await service.service_tables.claim(table, Owner(1))
    assert [await service.service_tables.owner(table) for table in tables] == [1] * 5
    assert len(service.service_tables._owners) == 2


async def test_lists_on_each_database(service: Service) -> None:
    admin = AdminService(service.log, who="a test")
    for name in ("shop", "other"):
        await admin.add_service_key(name, ["open", "read"])
    opened = []
    for number in range(5):
        owner = Owner(SHOP.id, f"m{number}")
        live, _ = await service.open_table({"name": f"table {number}"}, owner=owner)
        opened.append(live)
    others = [(await service.open_table({}, owner=one))[0] for one in (Owner(OTHER.id), None)]
    await service.execute(opened[0], CloseTable(Actor(service=True)))
    await service.log.run_when_idle(Projector().slice)

    async def listed(key: ServiceKey, limit: int = 100, **given: str) -> tuple[list[Any], Any]:
        members = dict.fromkeys(("ref", "state", "after")) | given
        return await list_tables(service.log, key, limit=limit, **members)

    own = sorted(live.table_id for live in opened)
    page, more = await listed(SHOP, 3)
    assert ([one["table"] for one in page], more) == (own[:3], own[2])
    page, more = await listed(SHOP, 3, after=more)
    assert ([one["table"] for one in page], more) == (own[3:], None)
    every, more = await listed(ADMIN)
    ids = sorted(live.table_id for live in (*opened, *others))
    assert ([one["table"] for one in every], more) == (ids, None)
    by = {one["table"]: one.get("opened_by") for one in every}
    assert [by[live.table_id] for live in (opened[0], *others)] == ["shop", "other", None]
    ((one,), _) = await listed(SHOP, ref="m0")
    assert (one["name"], one["state"], one["version"]) == ("table 0", "closed", 2)
    assert one["closed_at"] >= one["opened_at"] > 0
    page, _ = await listed(SHOP, state="open")
    assert {one["ref"] for one in page} == {f"m{number}" for number in range(1, 5)}
    assert await listed(OTHER, ref="m0") == ([], None)


async def test_keys_are_polled(service: Service) -> None:
    keys = service.service_keys
    changed: list[ServiceKey] = []
    keys.on_revoked(changed.append)
    admin = AdminService(service.log, who="a test")
    key = await admin.add_service_key("shop", ["read", "open"])
    assert keys.find(key) is None
    await keys.refresh(service.log)
    found = keys.find(key)
    assert found is not None
    assert (found.name, found.rights) == ("shop", frozenset(("open", "read")))
    assert keys.is_valid(found)
    assert (len(keys), changed) == (1, [])
    for wrong in (key[:-1], key + "\n", key.upper(), "", "dk_", new_key()):
        assert keys.find(wrong) is None
    with pytest.raises(ConcurrentUpdate):
        await admin.add_service_key("shop", ["open"])
    assert await admin.revoke_service_key("shop", why="x")
    assert not await admin.revoke_service_key("shop", why="x")
    await keys.refresh(service.log)
    assert (keys.find(key), keys.is_valid(found), len(keys)) == (None, False, 0)
    assert changed == [found]


def test_a_key_is_random_and_stored_as_a_digest() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert {len(key) for key in keys} == {46}
    assert len({digest_of(key) for key in keys}) == 100


@pytest.mark.parametrize("name", ["", "A", "a b", ".a", "a\n", "x" * 65, "é", "a/b", "a:b"])
def test_names_of_keys_are_checked(name: str) -> None:
    with pytest.raises(ConfigurationError):
        check_key(name, ["open"])
    check_key("shop-1.eu_2", ["open"])


@pytest.mark.parametrize("rights", [[], ["own"], ["open", "OPEN"], ["open "]])
def test_rights_of_keys_are_checked(rights: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="open, seat, read, close, broadcast, admin"):
        check_key("shop", rights)
