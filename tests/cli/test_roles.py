"""The database roles of docker-compose.yml on a real PostgreSQL server.

What creates them is a superuser, as in Compose, or an administrator as providers of PostgreSQL
give one: the database's owner with CREATEROLE and CREATEDB. With `initdb` of another version first
on PATH the tests run on that version.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from tests.harness.composed import Database, composed
from tests.harness.postgres import OwnServer, migrated, own_server, programs, query
from tests.harness.programs import output_of

from .conftest import Ask, Serve, play_and_open

ROOT = Path(__file__).parents[2]


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


@pytest.fixture(scope="module")
def provided() -> Iterator[OwnServer]:
    """A server with an administrator like a provider's, who may create roles and databases."""
    with own_server() as server:
        server.ask("postgres", "CREATE ROLE administrator LOGIN CREATEROLE CREATEDB")
        yield server


def of_a_provider(provided: OwnServer, folder: Path) -> Database:
    name = f"dealer_{len(provided.ask('postgres', 'SELECT FROM pg_database'))}"
    url = provided.url("postgres").replace("//dealer@", "//administrator@")
    query(url, f"CREATE DATABASE {name} TEMPLATE template0")
    return Database(provided, folder / "secrets", name=name, administrator="administrator")


@pytest.fixture(params=["superuser", "owner"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """An empty database that a superuser sets up, or its owner with CREATEROLE."""
    if request.param == "superuser":
        found: Database = request.getfixturevalue("database")
        return found
    return of_a_provider(request.getfixturevalue("provided"), tmp_path)


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
IN_SCHEMA = ("CREATE TABLE another (id integer)",)


def forbidden(database: Database) -> list[str]:
    """What a node must not do. Before PostgreSQL 15 only a superuser can close the schema to it."""
    (closed,) = database.server.ask(
        database.name, "SELECT NOT has_schema_privilege('dealer_node', 'public', 'CREATE')"
    )
    return [change for change in FORBIDDEN if closed[0] or change not in IN_SCHEMA]


@pytest.mark.slow
def test_a_node_cannot_change_events_or_the_schema(
    either: Database, file: dict[str, Any], tmp_path: Path
) -> None:
    set_up(either, file)
    node = either.url("node")
    asyncio.run(play_and_open(node, tmp_path / "key"))
    log = "SELECT * FROM event ORDER BY stream, version"
    before = query(node, log)
    assert len(before) > 100
    for change in forbidden(either):
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
        query(either.url("owner"), "DELETE FROM event")


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


def test_later_migrations_keep_the_privileges(either: Database, file: dict[str, Any]) -> None:
    set_up(either, file)
    query(either.url("owner"), "CREATE TABLE later (id integer PRIMARY KEY)")
    query(either.url("node"), "INSERT INTO later VALUES (1)")
    query(either.url("node"), "UPDATE later SET id = 2")
    assert query(either.url("node"), "SELECT id FROM later") == [(2,)]
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        query(either.url("node"), "DROP TABLE later")


def test_a_database_that_the_administrator_migrated_keeps_working(
    either: Database, file: dict[str, Any], tmp_path: Path
) -> None:
    administrator = either.url_of(either.administrator)
    migrated(administrator)
    asyncio.run(play_and_open(administrator, tmp_path / "key"))
    log = "SELECT * FROM event ORDER BY stream, version"
    before = query(administrator, log)
    set_up(either, file)
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
    assert query(administrator, owners) == [("dealer_owner",)]
    assert query(either.url("node"), log) == before
    for change in forbidden(either):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            query(either.url("node"), change)
    query(either.url("owner"), "ALTER TABLE event ADD COLUMN later integer")
    query(
        either.url("owner"),
        "CREATE OR REPLACE FUNCTION row_is_kept() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE EXCEPTION 'kept'; END $$",
    )
    asyncio.run(play_and_open(either.url("node"), tmp_path / "key"))


def test_which_commands_need_the_owner(
    ask: Ask, either: Database, file: dict[str, Any], tmp_path: Path
) -> None:
    set_up(either, file)
    key, folder = tmp_path / "key", tmp_path / "archive"
    folder.mkdir()
    node, owner = (("--database", either.url(role)) for role in ("node", "owner"))
    closed, still_open = asyncio.run(play_and_open(either.url("node"), key))
    assert ask("tables", "disable", still_open, "--why", "x", *node).code == 0
    assert ask("tables", "enable", still_open, "--why", "x", *node).code == 0
    assert ask("tables", *node).code == 0
    answer = ask("audit", closed, *node)
    assert answer.code == 0, answer.err
    for command in (("tables", "archive", closed, "--to", folder), ("rebuild",)):
        refused = ask(*command, *node)
        assert refused.code == 1
        assert "lacks privileges on the database" in refused.err
    assert query(either.url("node"), "SELECT count(*) FROM archived") == [(0,)]
    answer = ask("tables", "archive", closed, "--to", folder, *owner)
    assert answer.code == 0, answer.err
    assert verify(read((folder / f"{closed}.jsonl").read_bytes())).ok
    for maintenance in (("rebuild",), ("rotate-key", "--why", "x", "--house-key", key)):
        answer = ask(*maintenance, *owner)
        assert answer.code == 0, answer.err
    # Nodes can write to the tables that the rebuild created.
    asyncio.run(play_and_open(either.url("node"), key))
    asyncio.run(projected(either.url("node"), key))
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


def test_a_provider_whose_log_has_changes_of_the_schema_does_not_get_a_password(
    provided: OwnServer, file: dict[str, Any], tmp_path: Path
) -> None:
    database = of_a_provider(provided, tmp_path)
    provided.ask("postgres", f"ALTER DATABASE {database.name} SET log_statement = 'ddl'")
    set_up(database, file)
    written = (provided.folder / "log").read_text(encoding="utf-8")
    assert "GRANT CONNECT ON DATABASE" in written
    provided.ask("postgres", f"ALTER DATABASE {database.name} SET log_statement = 'all'")
    refused = printed(database, file)
    assert "writes every statement to its log" in refused
    written = (provided.folder / "log").read_text(encoding="utf-8")
    for secret in database.secrets.iterdir():
        assert secret.read_text(encoding="utf-8").strip() not in written


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER ROLE dealer_node CREATEDB", "A role may more than it needs: dealer_node"),
        ("GRANT dealer_owner TO dealer_node", "dealer_node may act as dealer_owner"),
        ("GRANT pg_monitor TO dealer_node", "WARNING:  dealer_node is a member of pg_monitor"),
    ],
)
def test_a_role_that_may_more_than_it_needs_is_named(
    database: Database, file: dict[str, Any], change: str, said: str
) -> None:
    set_up(database, file)
    database.server.ask("postgres", change)
    try:
        assert said in printed(database, file)
    finally:
        undone = (
            "ALTER ROLE dealer_node NOCREATEDB; REVOKE dealer_owner, pg_monitor FROM dealer_node"
        )
        for each in undone.split(";"):
            database.server.ask("postgres", each)


def printed(database: Database, file: dict[str, Any]) -> str:
    """What psql writes to its error output when it runs roles.sql, whether that fails or not."""
    return database.run(file, "roles", check=False)


@pytest.mark.parametrize("role", ["owner", "node"])
def test_a_server_that_owns_its_tables_warns(
    database: Database, file: dict[str, Any], serve: Serve, tmp_path: Path, role: str
) -> None:
    set_up(database, file)
    url, ports = database.url(role), ("--port", 0, "--ops-port", 0)
    server = serve("--database", url, "--house-key", tmp_path / "key", *ports)
    assert server.address
    assert ("the node owns its tables" in server.end().err) is (role == "owner")


def test_the_administrator_restores_a_dump(
    provided: OwnServer, file: dict[str, Any], tmp_path: Path
) -> None:
    """By the commands of MANAGED_POSTGRESQL.md, into another database of a provider."""
    database = of_a_provider(provided, tmp_path)
    set_up(database, file)
    asyncio.run(play_and_open(database.url("node"), tmp_path / "key"))
    log = "SELECT * FROM event ORDER BY stream, version"
    before = query(database.url("node"), log)
    dump, target = tmp_path / "dealer.dump", tmp_path / "target"
    output_of(tool("pg_dump"), "--format=custom", "--file", dump, "-d", database.url("owner"))
    target.mkdir()
    restored = of_a_provider(provided, target)
    for each in database.secrets.iterdir():
        (restored.secrets / each.name).write_bytes(each.read_bytes())
    restored.run(file, "roles")
    output_of(
        tool("pg_restore"), "--exit-on-error", "--no-owner", "--no-privileges",
        "--no-comments", "-d", restored.url("owner"), dump,
    )  # fmt: skip
    restored.run(file, "rights")
    assert query(restored.url("node"), log) == before
    for change in forbidden(restored):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            query(restored.url("node"), change)


def test_the_steps_of_the_page_about_providers(provided: OwnServer, tmp_path: Path) -> None:
    page = (ROOT / "dealer" / "cli" / "MANAGED_POSTGRESQL.md").read_text("utf-8")
    (steps, *_) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    (tmp_path / ".compose").mkdir()
    shutil.copy(ROOT / ".compose" / "roles.sql", tmp_path / ".compose")
    for documented, here in (
        ("PGSSLMODE=verify-full PGSSLROOTCERT=roots.pem", "PGSSLMODE=disable"),
        ("PGHOST=db.example.org", f"PGHOST={provided.folder}"),
        ("@db.example.org/dealer?sslmode=verify-full&sslrootcert=roots.pem",
         f"@/dealer?host={provided.folder}"),
    ):  # fmt: skip
        assert documented in steps
        steps = steps.replace(documented, here)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    said = output_of("bash", "-euo", "pipefail", "-c", steps, cwd=tmp_path, env=environment)
    assert "The schema was empty and is now" in said
    rights = "SELECT rolname FROM pg_roles WHERE has_table_privilege(oid, 'event', 'DELETE')"
    may_delete = {name for (name,) in provided.ask("dealer", rights)}
    assert "dealer_owner" in may_delete
    assert "dealer_node" not in may_delete


def tool(name: str) -> Path:
    """A program of PostgreSQL; those that come as npm packages are the server alone."""
    path = programs() / name
    if not path.exists():
        pytest.skip(f"{name} of this version of PostgreSQL is not installed")
    return path
