"""The database roles of docker-compose.yml on a real PostgreSQL server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service.build import ServiceOptions, open_service
from tests.harness.composed import Database, composed
from tests.harness.postgres import OwnServer, migrated, own_server, query

from .conftest import Ask, play_and_open


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with own_server() as server:
        yield server


@pytest.fixture(scope="module")
def file() -> dict[str, Any]:
    return composed()


@pytest.fixture
def database(server: OwnServer, tmp_path: Path) -> Database:
    """An empty database whose superuser is the one of Compose."""
    return Database(server, tmp_path / "secrets")


def set_up(database: Database, file: dict[str, Any]) -> None:
    database.run(file, "roles")
    migrated(database.url("owner"))
    database.run(file, "rights")


async def projected(url: str, key: Path) -> None:
    """Wait until the read models have every event."""
    lagging = "SELECT id FROM stream WHERE version > projected"
    async with (
        open_service(url, ServiceOptions(house="house.example"), house_key=key),
        asyncio.timeout(20),
    ):
        while await asyncio.to_thread(query, url, lagging):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


FORBIDDEN = (
    "UPDATE event SET public = 'forged'",
    "DELETE FROM event",
    "UPDATE events SET at = 1",
    "DELETE FROM events",
    "TRUNCATE event",
    "INSERT INTO event SELECT * FROM event"
    " ON CONFLICT (stream, version) DO UPDATE SET public = 'forged'",
    "ALTER TABLE event DISABLE TRIGGER ALL",
    "ALTER TABLE event DISABLE TRIGGER event_refuses_change",
    "DROP TRIGGER event_refuses_change ON event",
    "CREATE OR REPLACE FUNCTION event_is_kept() RETURNS trigger LANGUAGE plpgsql"
    " AS $$ BEGIN RETURN OLD; END $$",
    "ALTER TABLE event RENAME TO other",
    "DROP TABLE event",
    "SET session_replication_role = replica",
    "SET ROLE dealer_owner",
    "INSERT INTO archived SELECT id, version, id, id, '', 0, id, 0, 0 FROM stream",
    "DELETE FROM stream",
    "DELETE FROM checkpoint",
    "DELETE FROM journal",
    "UPDATE house SET value = ''",
    "DELETE FROM house",
    "INSERT INTO service_key (name, digest, rights, created_at) VALUES ('x', '', 'admin', 0)",
    "UPDATE service_key SET rights = 'admin'",
    "DELETE FROM service_key",
    "UPDATE service_table SET key = 1",
    "DELETE FROM service_table",
    "UPDATE alembic_version SET version_num = '0000'",
    "CREATE TABLE another (id integer)",
    "CREATE TEMPORARY TABLE another (id integer)",
    "CREATE ROLE another",
    "COPY event TO PROGRAM 'cat'",
    "SELECT pg_read_file('/etc/passwd')",
)


@pytest.mark.slow
def test_a_node_cannot_change_events_or_the_schema(
    database: Database, file: dict[str, Any], tmp_path: Path
) -> None:
    set_up(database, file)
    node = database.url("node")
    asyncio.run(play_and_open(node, tmp_path / "key"))
    log = "SELECT * FROM event ORDER BY stream, version"
    before = query(node, log)
    assert len(before) > 100
    for change in FORBIDDEN:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            query(node, change)
    assert query(node, log) == before
    roles = query(
        node,
        "SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
        " FROM pg_roles WHERE rolname LIKE 'dealer!_%' ESCAPE '!' ORDER BY rolname",
    )
    assert roles == [("dealer_node", *[False] * 5), ("dealer_owner", *[False] * 5)]
    # The triggers also apply to the owner, as whom only the migration connects.
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="never changed"):
        query(database.url("owner"), "DELETE FROM event")


def test_the_owner_makes_service_keys(database: Database, file: dict[str, Any], ask: Ask) -> None:
    set_up(database, file)
    owner, node = database.url("owner"), database.url("node")
    assert ask("key", "add", "shop", "--may", "open", "--database", owner).code == 0
    refused = ask("key", "add", "own", "--may", "admin", "--database", node)
    assert refused.code == 1
    assert refused.out == ""
    listed = ask("key", "list", "--database", node).lines
    assert [line.split()[:2] for line in listed] == [["shop", "open"]]
    assert ask("key", "revoke", "shop", "--why", "x", "--database", owner).code == 0


def test_later_migrations_keep_the_privileges(database: Database, file: dict[str, Any]) -> None:
    set_up(database, file)
    query(database.url("owner"), "CREATE TABLE later (id integer PRIMARY KEY)")
    query(database.url("node"), "INSERT INTO later VALUES (1)")
    query(database.url("node"), "UPDATE later SET id = 2")
    assert query(database.url("node"), "SELECT id FROM later") == [(2,)]
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        query(database.url("node"), "DROP TABLE later")


def test_a_database_created_by_the_superuser_keeps_working(
    database: Database, file: dict[str, Any], tmp_path: Path
) -> None:
    superuser = database.server.url(database.name)
    migrated(superuser)
    asyncio.run(play_and_open(superuser, tmp_path / "key"))
    log = "SELECT * FROM event ORDER BY stream, version"
    before = query(superuser, log)
    set_up(database, file)
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
    assert query(superuser, owners) == [("dealer_owner",)]
    assert query(database.url("node"), log) == before
    for change in FORBIDDEN:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            query(database.url("node"), change)
    query(database.url("owner"), "ALTER TABLE event ADD COLUMN later integer")
    query(
        database.url("owner"),
        "CREATE OR REPLACE FUNCTION row_is_kept() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE EXCEPTION 'kept'; END $$",
    )
    asyncio.run(play_and_open(database.url("node"), tmp_path / "key"))


def test_which_commands_need_the_owner(
    ask: Ask, database: Database, file: dict[str, Any], tmp_path: Path
) -> None:
    set_up(database, file)
    key, folder = tmp_path / "key", tmp_path / "archive"
    folder.mkdir()
    node, owner = (("--database", database.url(role)) for role in ("node", "owner"))
    closed, still_open = asyncio.run(play_and_open(database.url("node"), key))
    assert ask("tables", "disable", still_open, "--why", "x", *node).code == 0
    assert ask("tables", "enable", still_open, "--why", "x", *node).code == 0
    assert ask("tables", *node).code == 0
    answer = ask("audit", closed, *node)
    assert answer.code == 0, answer.err
    for command in (("tables", "archive", closed, "--to", folder), ("rebuild",)):
        refused = ask(*command, *node)
        assert refused.code == 1
        assert "lacks privileges on the database" in refused.err
    assert query(database.url("node"), "SELECT count(*) FROM archived") == [(0,)]
    answer = ask("tables", "archive", closed, "--to", folder, *owner)
    assert answer.code == 0, answer.err
    assert verify(read((folder / f"{closed}.jsonl").read_bytes())).ok
    for maintenance in (("rebuild",), ("rotate-key", "--why", "x", "--house-key", key)):
        answer = ask(*maintenance, *owner)
        assert answer.code == 0, answer.err
    # Nodes can write to the tables that the rebuild created.
    asyncio.run(play_and_open(database.url("node"), key))
    asyncio.run(projected(database.url("node"), key))
    answer = ask("tables", "close", "--idle", "0m", "--why", "x", "--house-key", key, *node)
    assert answer.code == 0, answer.err


def test_a_password_is_read_from_its_file_and_written_nowhere(
    database: Database, file: dict[str, Any]
) -> None:
    superuser = database.server.url(database.name)
    query(superuser, f"ALTER DATABASE {database.name} SET log_statement = 'all'")
    set_up(database, file)
    old = database.url("node")
    (database.secrets / "node_password").write_text('a\'new one\\ with "signs"\n')
    database.run(file, "rights")
    assert query(database.url("node"), "SELECT current_user::text") == [("dealer_node",)]
    with pytest.raises(asyncpg.InvalidPasswordError):
        query(old, "SELECT 1")
    written = (database.server.folder / "log").read_text(encoding="utf-8")
    assert "GRANT" not in written
    assert "SELECT current_user" in written
    for secret in database.secrets.iterdir():
        assert secret.read_text(encoding="utf-8").strip() not in written
    assert "SCRAM" not in written
