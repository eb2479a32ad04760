"""`dealer backup` and `dealer restore`, on both databases."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from dealer.eventlog.backends import open_readonly
from dealer.game.commands import Actor, CloseRound, CloseTable, Draw
from dealer.service.build import open_service
from dealer.service.operations.backup import Folders, back_up
from dealer.service.service import ServiceOptions
from tests.eventlog.conftest import TemporaryPostgres
from tests.harness.postgres import Postgres, migrated, own_server, programs
from tests.service.tables import shuffled_table

from .conftest import HOST, Answer, Ask, Played

pytestmark = pytest.mark.slow

DOCUMENT = (Path(__file__).parents[2] / "dealer/cli/OPERATING.md").read_text(encoding="utf-8")


class House(NamedTuple):
    """A house on a database at `url`; `options` name it to a command."""

    url: str
    key: Path
    archive: Path

    @property
    def options(self) -> Sequence[object]:
        return "--database", self.url, "--house-key", self.key, "--archive", self.archive


@pytest.fixture(params=["sqlite", "postgres"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> House:
    made, url = tmp_path / "house", f"sqlite:///{tmp_path / 'house' / 'dealer.db'}"
    made.mkdir()
    (made / "archive").mkdir()
    if request.param == "postgres":
        url = TemporaryPostgres(request.getfixturevalue("postgres")).url
    return House(url, made / "house.key", made / "archive")


@pytest.fixture
def elsewhere(house: House, tmp_path: Path, request: pytest.FixtureRequest) -> House:
    """Where it is restored: other folders, and a database that is empty or missing."""
    made = tmp_path / "elsewhere"
    made.mkdir()
    (made / "archive").mkdir()
    url = f"sqlite:///{made / 'dealer.db'}"
    if not house.url.startswith("sqlite"):
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.url(postgres.empty())
    return House(url, made / "house.key", made / "archive")


def run(program: str, *arguments: object) -> None:
    subprocess.run([programs() / program, *map(str, arguments)], check=True)


def dump(house: House, to: Path) -> None:
    """The operator's step before `dealer backup`, which SQLite does not need."""
    if not house.url.startswith("sqlite"):
        to.mkdir(mode=0o700)
        run("pg_dump", "--format=custom", "--file", to / "dealer.dump", house.url)


def pg_restore(house: House, source: Path) -> None:
    """The operator's step before `dealer restore`."""
    if not house.url.startswith("sqlite"):
        run("pg_restore", "--exit-on-error", "--dbname", house.url, source / "dealer.dump")


async def play(house: House) -> tuple[str, str]:
    """The ids of a closed table, and of one that has drawn a card."""
    async with open_service(house.url, house_key=house.key) as service:
        closed, still_open = await shuffled_table(service), await shuffled_table(service)
        await service.execute(closed, CloseTable(HOST))
        await service.execute(still_open, Draw(Actor(seat=1)))
        return closed.table_id, still_open.table_id


async def is_closed(house: House, table: str, marks: Path | None = None) -> bool:
    async with open_service(
        house.url, ServiceOptions(archive=house.archive), house_key=house.key, marks=marks
    ) as service:
        return bool((await service.lifecycle.load(table)).table.closed)


def test_a_backup_is_restored_elsewhere(
    ask: Ask, house: House, elsewhere: House, tmp_path: Path
) -> None:
    closed, still_open = asyncio.run(play(house))
    assert ask("tables", "archive", closed, "--to", house.archive, *house.options[:2]).code == 0
    assert ask("rotate-key", "--why", "x", *house.options[:4]).code == 0
    for kind in ("packs", "games"):
        (tmp_path / kind).mkdir()
        (tmp_path / f"other_{kind}").mkdir()
    (tmp_path / "packs" / "mine.csv").write_text("Sun\nMoon\n")
    own = ("--packs", tmp_path / "packs", "--games", tmp_path / "games")
    to = tmp_path / "backup"
    dump(house, to)
    done = ask("backup", to, *house.options, *own)
    assert (done.code, done.err) == (0, "")
    names = {each.relative_to(to).as_posix() for each in to.rglob("*") if each.is_file()}
    database = "dealer.db" if house.url.startswith("sqlite") else "dealer.dump"
    earlier = {each.suffix for each in house.key.parent.glob("house.key.*")}
    assert len(earlier) == 1
    keys = {"key/key", *(f"key/key{end}" for end in earlier)}
    bundle = f"archive/{closed}.jsonl"
    assert names == {database, "SHA256SUMS", bundle, "packs/mine.csv", *keys}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=to, check=True)
    assert {each.stat().st_mode & 0o077 for each in (to, *to.rglob("*/*"), to / database)} == {0}

    pg_restore(elsewhere, to)
    own = ("--packs", tmp_path / "other_packs", "--games", tmp_path / "other_games")
    restored = ask("restore", to, *elsewhere.options, *own)
    assert restored.code == 0, restored.err
    assert (tmp_path / "other_packs" / "mine.csv").read_text() == "Sun\nMoon\n"
    assert (elsewhere.archive / f"{closed}.jsonl").read_bytes() == (to / bundle).read_bytes()
    assert {each.suffix for each in elsewhere.key.parent.glob("house.key.*")} == earlier
    assert [line.split()[3] for line in ask("journal", *elsewhere.options[:2]).lines[:1]] == [
        "restore-backup"
    ]
    assert asyncio.run(is_closed(elsewhere, still_open)), "no mark here shows that nothing was lost"


@pytest.mark.parametrize("complete", [False, True])
def test_a_complete_backup_continues_where_that_is_said(
    ask: Ask, house: House, elsewhere: House, tmp_path: Path, complete: bool
) -> None:
    _, still_open = asyncio.run(play(house))
    to = tmp_path / "backup"
    dump(house, to)
    assert ask("backup", to, *house.options).code == 0
    pg_restore(elsewhere, to)
    said = ("--complete",) if complete else ()
    assert ask("restore", to, *said, *elsewhere.options).code == 0
    assert asyncio.run(is_closed(elsewhere, still_open)) is not complete


def test_a_mark_of_a_lost_event_counts_whatever_the_operator_says(
    ask: Ask, house: House, elsewhere: House, tmp_path: Path
) -> None:
    """The operator says that nothing was played after the backup, but something was."""
    _, still_open = asyncio.run(play(house))
    to = tmp_path / "backup"
    dump(house, to)
    assert ask("backup", to, *house.options).code == 0

    async def draw() -> None:
        async with open_service(house.url, house_key=house.key) as service:
            await service.execute(await service.lifecycle.load(still_open), Draw(Actor(seat=1)))

    asyncio.run(draw())
    pg_restore(elsewhere, to)
    assert ask("restore", to, "--complete", *elsewhere.options).code == 0
    for mark in house.key.parent.glob("*.mark.*"):
        shutil.copy(mark, elsewhere.key.parent)
    assert asyncio.run(is_closed(elsewhere, still_open))


def steps(folder: Path, house: House, *, first: str) -> None:
    """Run the example of OPERATING.md that begins so, but `serve`, with the settings of a house."""
    examples = re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL)
    (example,) = (each for each in examples if each.startswith(first))
    server = dict(parse_qsl(urlsplit(house.url).query)).get("host", "")
    environment = os.environ | {
        "PATH": f"{programs()}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PGHOST": server,
        "PGUSER": "dealer",
        "DEALER_DATABASE_URL": house.url,
        "DEALER_HOUSE_KEY_FILE": str(house.key),
    }
    text = example.replace("dealer serve\n", "")
    subprocess.run(["sh", "-ec", text], cwd=folder, env=environment, check=True)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("first", ["idle", "writer"])
def test_two_nodes_by_the_steps_of_the_document(
    ask: Ask, tmp_path: Path, kind: str, first: str
) -> None:
    """Each node has its marks; all that was lost was played at `writer`."""
    marks = {name: tmp_path / name for name in ("idle", "writer")}
    for folder in marks.values():
        folder.mkdir()
    with ExitStack() as stack:
        file = tmp_path / "dealer.db"
        house = House(f"sqlite:///{file}", tmp_path / "key", tmp_path)
        if kind == "postgres":
            server = stack.enter_context(own_server())
            server.ask("postgres", "CREATE DATABASE dealer")
            house = house._replace(url=server.url("dealer"))
            migrated(house.url)

        async def play_at_the_writer(table: str | None) -> str:
            async with (
                open_service(house.url, house_key=house.key, marks=marks["idle"]),
                open_service(house.url, house_key=house.key, marks=marks["writer"]) as writer,
            ):
                if table is None:
                    return (await shuffled_table(writer)).table_id
                live_table = await writer.lifecycle.load(table)
                await writer.execute(live_table, Draw(Actor(seat=1)))
                await writer.execute(live_table, CloseRound(HOST))
                return table

        table = asyncio.run(play_at_the_writer(None))
        steps(tmp_path, house, first="dealer backup monday" if kind == "sqlite" else "mkdir -m")
        asyncio.run(play_at_the_writer(table))
        if kind == "postgres":
            server.drop("dealer")
        else:
            for each in tmp_path.glob("dealer.db*"):
                each.rename(tmp_path / "idle" / each.name)
        steps(tmp_path, house, first="dealer restore" if kind == "sqlite" else "createdb")
        for name in (first, "idle", "writer"):
            assert asyncio.run(is_closed(house, table, marks=marks[name]))
        restores = ask("journal", "--json", "--database", house.url).lines
        assert [json.loads(line)["what"] for line in restores].count("restore") == 1


async def test_it_is_made_while_a_server_writes(house: House, tmp_path: Path) -> None:
    to = tmp_path / "backup"
    async with open_service(house.url, house_key=house.key) as service:
        live_table = await shuffled_table(service)
        assert service.maintenance.backup_at == 0
        await asyncio.to_thread(dump, house, to)
        done = await back_up(
            house.url, to, house_key=house.key, folders=Folders(house.archive), who="Zoe"
        )
        assert done.files == 2
        await service.execute(live_table, Draw(Actor(seat=1)))
        await service.maintenance.refresh(service.log)
        assert 0 <= service.now() - service.maintenance.backup_at < 60_000
    if house.url.startswith("sqlite"):
        async with await open_readonly(f"sqlite:///{to / 'dealer.db'}") as copy:
            assert await copy.head(live_table.id) == live_table.committed - 1


def test_a_backup_that_fails_leaves_nothing(ask: Ask, house: House, tmp_path: Path) -> None:
    closed, _ = asyncio.run(play(house))
    ask("tables", "archive", closed, "--to", house.archive, *house.options[:2])
    (house.archive / f"{closed}.jsonl").write_text("another\n")
    to = tmp_path / "backup"
    dump(house, to)
    before = sorted(to.iterdir()) if to.exists() else None
    failed = ask("backup", to, *house.options)
    assert failed.code == 1
    assert "is not the bundle that was archived" in failed.err
    assert (sorted(to.iterdir()) if to.exists() else None) == before
    (house.archive / f"{closed}.jsonl").unlink()
    done = ask("backup", to, *house.options)
    assert (done.code, "that are not in" in done.err) == (0, True)


@pytest.fixture
def backup(ask: Ask, played: Played, tmp_path: Path) -> Path:
    to = tmp_path / "backup"
    assert ask("backup", to, "--database", played.url).code == 0
    return to


def test_a_folder_that_was_there_is_for_its_owner_only(
    ask: Ask, played: Played, tmp_path: Path
) -> None:
    to = tmp_path / "backup"
    to.mkdir(mode=0o755)
    assert ask("backup", to, "--database", played.url).code == 0
    made = [to, *to.rglob("*")]
    assert [each.name for each in made if stat.S_IMODE(each.stat().st_mode) & 0o077] == []


def test_a_folder_that_is_not_empty_is_refused(ask: Ask, played: Played, backup: Path) -> None:
    before = (backup / "SHA256SUMS").read_bytes()
    refused = ask("backup", backup, "--database", played.url)
    assert (refused.code, "is not empty" in refused.err) == (2, True)
    assert (backup / "SHA256SUMS").read_bytes() == before


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("rm SHA256SUMS", "is no complete backup"),
        ("rm key/key", "is missing, or is not the one that was backed up"),
        ("printf x >> dealer.db", "is missing, or is not the one that was backed up"),
        ("printf '%064d  ../x\\n' 0 >> SHA256SUMS", "is damaged"),
        ("printf x >> SHA256SUMS", "is damaged"),
        *(
            (f"mkdir -p a; touch {name}; sha256sum {name} >> SHA256SUMS", "is damaged")
            for name in (
                "key/key.mark.0",
                "key/keyXYZ",
                "key/key.new.0",
                "key/other",
                "other.db",
                "dealer.db-wal",
                "a/b",
                "./dealer.db",
                "key/../x",
                "key//key",
            )
        ),
        (
            f"mkdir -p archive; echo > archive/{32 * '0'}.jsonl; sha256sum archive/* >> SHA256SUMS",
            "is no bundle of this database",
        ),
        (
            "mkdir packs; touch packs/a.csv; sha256sum packs/a.csv >> SHA256SUMS",
            "has files for the folder of --packs",
        ),
        (
            "head -c 32 /dev/urandom > key/key; sha256sum key/key dealer.db > SHA256SUMS",
            "are not those of this database",
        ),
    ],
)
def test_a_damaged_backup_restores_nothing(
    ask: Ask, backup: Path, tmp_path: Path, damage: str, says: str
) -> None:
    subprocess.run(["sh", "-c", damage], cwd=backup, check=True)
    to = tmp_path / "new"
    to.mkdir()
    (tmp_path / "archive").mkdir()
    address = f"sqlite:///{to / 'dealer.db'}"
    refused = ask("restore", backup, "--database", address, "--archive", tmp_path / "archive")
    assert refused.code in (1, 2)
    assert says in " ".join(refused.err.replace("\u2502", " ").split())
    assert [*to.iterdir(), *(tmp_path / "archive").iterdir()] == []


def test_nothing_is_replaced(ask: Ask, played: Played, backup: Path, tmp_path: Path) -> None:
    refused = ask("restore", backup, "--database", played.url)
    assert "Stop every server, move it elsewhere" in " ".join(refused.err.split())
    to = tmp_path / "new"
    to.mkdir()
    (to / "dealer.db.key").write_bytes(bytes(32))
    refused = ask("restore", backup, "--database", f"sqlite:///{to / 'dealer.db'}")
    assert (refused.code, "There is another" in refused.err) == (2, True)
    assert [each.name for each in to.iterdir()] == ["dealer.db.key"]
    shutil.copy(backup / "key" / "key", to / "dealer.db.key")  # the key that was left in its place
    (to / "dealer.db.part").write_bytes(b"of a restore that was killed")
    assert ask("restore", backup, "--database", f"sqlite:///{to / 'dealer.db'}").code == 0


def test_the_target_of_a_link_is_restored(ask: Ask, backup: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link.db").symlink_to(Path("disk") / "dealer.db")
    url = f"sqlite:///{tmp_path / 'link.db'}"
    assert ask("restore", backup, "--database", url).code == 0
    assert (tmp_path / "link.db").readlink() == Path("disk") / "dealer.db"
    assert [each.name for each in (tmp_path / "disk").iterdir()] == ["dealer.db"]
    assert ask("tables", "--database", url).lines


def test_the_order_of_the_steps_is_checked(
    ask: Ask, postgres: Postgres, backup: Path, tmp_path: Path
) -> None:
    house = House(TemporaryPostgres(postgres).url, tmp_path / "k", tmp_path)
    asyncio.run(play(house))
    at = house.options[:4]
    to = tmp_path / "second"
    assert "has to be dumped first" in ask("backup", to, *at).err
    assert not to.exists()
    to.mkdir()
    (to / "dealer.dump").write_text("-- a dump as SQL")
    assert "has to be dumped first" in ask("backup", to, *at).err
    (to / "dealer.dump").unlink()
    to.rmdir()
    dump(house, to)
    assert ask("backup", to, *at).code == 0
    empty = postgres.url(postgres.empty())
    into = ("--database", empty, "--house-key", tmp_path / "k2")
    assert "First run `pg_restore" in ask("restore", to, *into).err
    assert "is one of a SQLite database" in ask("restore", backup, *into).err
    file = f"sqlite:///{tmp_path / 'x.db'}"
    assert "is one of a PostgreSQL database" in ask("restore", to, "--database", file).err
    pg_restore(house._replace(url=empty), to)

    async def while_a_server_runs() -> Answer:
        async with open_service(empty, house_key=house.key):
            return await asyncio.to_thread(ask, "restore", to, *into)

    said = " ".join(asyncio.run(while_a_server_runs()).err.split())
    assert re.search("programs? still uses? the database: stop every server", said)
    assert not (tmp_path / "k2").exists()


def test_a_recovery_to_a_point_in_time_is_noticed(tmp_path: Path) -> None:
    """By the files of PostgreSQL, whose recovery begins another timeline."""
    with own_server(safe=True) as server:
        house = House(server.url(server.database()), tmp_path / "key", tmp_path)
        for name in ("idle", "writer"):
            (tmp_path / name).mkdir()

        async def begin() -> str:
            async with (
                open_service(house.url, house_key=house.key, marks=tmp_path / "idle"),
                open_service(house.url, house_key=house.key, marks=tmp_path / "writer") as writer,
            ):
                return (await shuffled_table(writer)).table_id

        async def play_on() -> None:
            async with open_service(
                house.url, house_key=house.key, marks=tmp_path / "writer"
            ) as writer:
                await writer.execute(await writer.lifecycle.load(table), CloseRound(HOST))

        table = asyncio.run(begin())
        data, saved = server.folder / "data", server.folder / "saved"
        server.stop("fast")
        run_cp(data, saved)
        server.start()
        asyncio.run(play_on())
        server.stop("fast")
        shutil.rmtree(data)
        saved.rename(data)
        (data / "recovery.signal").touch()
        with (data / "postgresql.auto.conf").open("a") as settings:
            settings.write("restore_command = 'false'\n")
        server.start()
        assert asyncio.run(is_closed(house, table, marks=tmp_path / "idle"))


def run_cp(source: Path, to: Path) -> None:
    """A copy with the owners of the files."""
    subprocess.run(["cp", "-a", source, to], check=True)
