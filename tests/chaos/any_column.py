"""Changes one value in every column of every SQL table, and finds out who notices.

    python tests/chaos/any_column.py            # all changes, as the table in CHANGED_COLUMNS.md
    python tests/chaos/any_column.py event      # the changes of one SQL table
    python tests/chaos/any_column.py --write    # all, and write it into CHANGED_COLUMNS.md

The columns are those that the program declares. What else an administrator without the house key
can do (rows deleted or moved) is in `MORE`. Each change is made in a copy of a database with a
closed table, an open one, and an archived one. Then a server starts on it, takes a command at the
open table and sends the bundles of all three; `dealer audit` is run for the first two, and then
`dealer rebuild`.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.error import HTTPError
from urllib.request import urlopen

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from sqlalchemy import Column, LargeBinary, Table, Text, UniqueConstraint
from sqlalchemy.dialects import sqlite

from dealer.cli import main as dealer
from dealer.cli.demo_game import play
from dealer.errors import DealerError
from dealer.eventlog.keys import key_file, load_house_keys
from dealer.feed.pages import FeedFilter
from dealer.feed.positions import Place
from dealer.game.cards import STANDARD
from dealer.game.commands import (
    Actor,
    AddNote,
    CloseTable,
    Deal,
    OpenRound,
    Show,
    StartShuffle,
    TakeSeat,
)
from dealer.gateway.limits import Limits
from dealer.gateway.server import serve
from dealer.projector.declared import metadata
from dealer.projector.models import MODELS
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.identity.admin import AdminService
from dealer.service.identity.service_tables import Owner
from dealer.service.operations.archiver import Archiver
from dealer.service.operations.webhooks import WebhookAdmin
from dealer.service.service import ServiceOptions
from dealer.service.tables.execution import IdempotencyKey
from tests.harness.limits import NO_RATES
from tests.harness.service_keys import add_key, found

HOST = Actor(host=True)
DIALECT = sqlite.dialect()
DOCUMENT = Path(__file__).parents[2] / "dealer" / "eventlog" / "CHANGED_COLUMNS.md"
SECONDS = 10.0
TOO_SLOW = "the log does not answer in time"
"""What `/readyz` says for a machine that is busy: no change of the database is its reason."""
SAVEPOINTS = (
    "dealer.service.tables.live_table.STORE_EVERY",
    "dealer.service.tables.loading.STORE_EVERY",
    "dealer.service.tables.live_table.SAVEPOINT_EVERY",
)


class Original(NamedTuple):
    """The folder of the database, and the ids of its tables."""

    folder: Path
    closed: str
    open: str
    archived: str

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'dealer.db'}"

    def copy(self, folder: Path) -> Original:
        shutil.copytree(self.folder, folder)
        return self._replace(folder=folder)


class Change(NamedTuple):
    """SQL statements, and what they change."""

    what: str
    statements: tuple[str, ...]


class Noticed(NamedTuple):
    """Who noticed a change: what the server did, and whether the others said something."""

    server: str
    readyz: str
    audit: str
    rebuild: str
    effect: str = ""


# The database


def make(folder: Path) -> Original:
    """A database in which every SQL table has a row."""
    with ExitStack() as stack:
        for name in SAVEPOINTS:
            stack.enter_context(patch(name, 1))
        original = asyncio.run(_play(folder))
    with closing(sqlite3.connect(folder / "dealer.db")) as database, database:
        for table in metadata.sorted_tables:
            if not database.execute(f"SELECT 1 FROM {table.name}").fetchone():
                row = {column.name: _some(column) for column in table.columns}
                names, marks = ", ".join(row), ", ".join("?" * len(row))
                insert = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"
                database.execute(insert, list(row.values()))
    return original


async def _play(folder: Path) -> Original:
    url = f"sqlite:///{folder / 'dealer.db'}"
    async with open_service(url) as service:
        async with serve(service, port=0, limits=Limits(**NO_RATES)) as gateway:
            closed = await play(f"ws://127.0.0.1:{gateway.port}/ws", lambda _: None)
        shop = found(service, await add_key(service, "shop", "open", "read"))
        owner = Owner(shop.id, "a game")
        live_table, _ = await service.open_table({"name": "open"}, owner=owner)
        for name in ("Eve", "Fay"):
            await service.execute(live_table, TakeSeat(name), key=_named(name))
        await service.checkpoints.checkpoint(live_table)  # one that is not due, the oldest
        await service.execute(live_table, OpenRound(HOST, STANDARD, "house", 1000, 1000))
        await service.execute(live_table, StartShuffle(HOST))
        await service.execute(live_table, Deal(HOST, 2), key=_named("deal"))
        await service.execute(live_table, Show(Actor(seat=1), "hand:1", to=2))
        archived, _ = await service.open_table({"name": "archived"})
        await service.execute(archived, CloseTable(HOST))
        assert service.projection is not None
        await service.projection.up_to_date()
        await service.feed.scheduler.up_to_date()
        keys = await load_house_keys(service.log, key_file(url), fresh=bytes(32))
        await WebhookAdmin(service.log, who="a test").add(
            keys, "http://127.0.0.1:9/", key="shop", types=[], signing="hmac", after="start",
            allow_private=True, why="a test",
        )  # fmt: skip
        await AdminService(service.log, who="a test").disable("0" * 32, why="a test")
        (folder / "archive").mkdir()
        archiver = Archiver(service.log, url, folder / "archive", who="a test", why="a test")
        await archiver.archive(archived.id)
    return Original(folder, closed, live_table.table_id, archived.table_id)


def _named(name: str) -> IdempotencyKey:
    return IdempotencyKey("seat:1:2", f"0199f3c2-a1b2-4b0f-9c0e-{name.encode().hex():>012}")


def _some(column: Column[Any]) -> object:
    kind = column.type.dialect_impl(DIALECT)
    if isinstance(kind, LargeBinary):
        return bytes(kind.length or 32)
    return "some" if isinstance(kind, Text) else 1


# The changes

_OPEN = "stream = (SELECT id FROM stream WHERE hex(table_id) = upper('{open}'))"
_CLOSED = "stream = (SELECT id FROM stream WHERE hex(table_id) = upper('{closed}'))"
_NOT_DUE = f"size = (SELECT min(size) FROM checkpoint WHERE {_OPEN})"
_DUE = f"size = (SELECT version FROM event WHERE {_OPEN} AND type = 'E')"
_NEWEST = f"version = (SELECT max(version) FROM event WHERE {_OPEN})"

ROWS: dict[str, dict[str, str]] = {
    "stream": {"": "hex(table_id) = upper('{open}')"},
    "event": {
        ", signed": f"{_OPEN} AND type = 'S' AND version % 2",
        ", newer than the newest head": f"{_OPEN} AND type = 'D' AND command IS NOT NULL",
    },
    "checkpoint": {
        ", newest": f"{_OPEN} AND size = (SELECT max(size) FROM checkpoint WHERE {_OPEN})",
        ", older": f"{_OPEN} AND {_DUE}",
    },
    "house": {", the key's check value": "name = 'key'", ", its home": "name LIKE 'home%'"},
    "seats": {"": _CLOSED},
}
"""The row of a table in which a value is changed: by default the first."""

MORE = (
    Change(
        "`event.hidden`, of a closed round",
        (f"UPDATE event SET hidden = zeroblob(44) WHERE {_CLOSED} AND type = 'D' AND version % 2",),
    ),
    Change(
        "`event.hidden`, an open round's secret",
        (f"UPDATE event SET hidden = zeroblob(92) WHERE {_OPEN} AND type = 'RoundOpened'",),
    ),
    Change(
        "`event.hidden`, a closed round's secret",
        (f"UPDATE event SET hidden = zeroblob(92) WHERE {_CLOSED} AND type = 'RoundOpened'",),
    ),
    Change(
        "`event`, the newest row deleted",
        (f"DELETE FROM event WHERE {_OPEN} AND {_NEWEST}",),
    ),
    Change(
        "`event`, the newest row moved to another table",
        (
            "UPDATE event SET version = 1000,"
            " stream = (SELECT id FROM stream WHERE hex(table_id) = upper('{closed}'))"
            f" WHERE {_OPEN} AND {_NEWEST}",
        ),
    ),
    Change(
        "`event`, a row in the middle deleted",
        (f"DELETE FROM event WHERE {_OPEN} AND version = 3",),
    ),
    Change(
        "`event`, the newest row deleted, and `stream.version` one lower",
        (
            f"DELETE FROM event WHERE {_OPEN} AND {_NEWEST}",
            "UPDATE stream SET version = version - 1 WHERE hex(table_id) = upper('{open}')",
        ),
    ),
    Change(
        "`stream.version`, one lower",
        ("UPDATE stream SET version = version - 1 WHERE hex(table_id) = upper('{open}')",),
    ),
    Change(
        "`checkpoint`, all rows of a table deleted",
        (f"DELETE FROM checkpoint WHERE {_OPEN}",),
    ),
    Change(
        "`checkpoint`, the newest row deleted",
        (
            f"DELETE FROM checkpoint WHERE {_OPEN}"
            f" AND size = (SELECT max(size) FROM checkpoint WHERE {_OPEN})",
        ),
    ),
    Change(
        "`checkpoint`, an older row deleted",
        (f"DELETE FROM checkpoint WHERE {_OPEN} AND {_DUE}",),
    ),
    Change(
        "`checkpoint`, a row that is not due deleted",
        (f"DELETE FROM checkpoint WHERE {_OPEN} AND {_NOT_DUE}",),
    ),
    Change(
        "`stream`, the row of a table deleted",
        ("DELETE FROM stream WHERE hex(table_id) = upper('{open}')",),
    ),
    Change("`house`, all rows deleted", ("DELETE FROM house",)),
)


def changes() -> Iterator[Change]:
    """A change of every declared column, and those of `MORE`."""
    for table in metadata.sorted_tables:
        for which, where in ROWS.get(table.name, {"": "1"}).items():
            for column in table.columns:
                yield Change(
                    f"`{table.name}.{column.name}`{which}", (_update(table, column, where),)
                )
    yield from MORE


def _update(table: Table, column: Column[Any], where: str) -> str:
    """The statement that changes one value, to one of the same type."""
    name, kind = column.name, column.type.dialect_impl(DIALECT)
    unique = [one for one in table.constraints if isinstance(one, UniqueConstraint)]
    if isinstance(kind, LargeBinary):
        value = f"other_bytes({name})"
    elif isinstance(kind, Text):
        value = f"other_text({name})"
    elif column.primary_key or any(name in one.columns for one in unique):
        value = f"{name} + 1000"
    else:
        value = f"coalesce({name}, 0) + 1"
    key = ", ".join(one.name for one in table.primary_key)
    found = f"SELECT {key} FROM {table.name} WHERE {where} LIMIT 1"
    return f"UPDATE {table.name} SET {name} = {value} WHERE ({key}) = ({found})"


def _other_bytes(value: bytes | str | int | None) -> bytes:
    if not isinstance(value, bytes):
        return b"\1" * 32
    return value[:-1] + bytes([value[-1] ^ 1]) if value else b"\1"


def _other_text(value: str | bytes | None) -> str | bytes:
    """Another text: the last of its letters or digits is another one."""
    if isinstance(value, bytes):
        return _other_bytes(value)
    for at in range(len(value or "") - 1, -1, -1):
        one = (value or "")[at]
        if one.isalnum():
            other = chr(ord(one) ^ 1) if chr(ord(one) ^ 1).isalnum() else "3"
            return (value or "")[:at] + other + (value or "")[at + 1 :]
    return "some"


def apply(change: Change, to: Original) -> None:
    """Make the change, around triggers and constraints; it has to change something."""
    with closing(sqlite3.connect(to.folder / "dealer.db")) as database, database:
        database.create_function("other_bytes", 1, _other_bytes)
        database.create_function("other_text", 1, _other_text)
        database.execute("PRAGMA ignore_check_constraints = ON")
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            database.execute(f"DROP TRIGGER {name}")
        for statement in change.statements:
            statement = statement.format(open=to.open, closed=to.closed)
            if not database.execute(statement).rowcount:
                raise AssertionError(f"{change.what}: {statement} changed nothing")


# Who notices


async def ask_server(copy: Original) -> tuple[str, str]:
    """What a server does with the database, and what `/readyz` says."""
    says = ""
    unexpected: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unexpected.append(str(context)))
    limits = Limits(**(NO_RATES | {"closing": 0.1, "drain": 1.0}))
    try:
        async with (
            open_service(copy.url, ServiceOptions(archive=copy.folder / "archive")) as service,
            serve(service, port=0, ops_port=0, limits=limits) as gateway,
        ):
            try:
                async with asyncio.timeout(SECONDS):
                    says = await _use(service, f"http://127.0.0.1:{gateway.port}", copy)
            except TimeoutError:
                says = "does not answer"
            except DealerError:
                says = "refuses the table"
            while gateway.probe.problem == TOO_SLOW:
                await gateway.probe.check()
            ready = await asyncio.to_thread(_get, f"http://127.0.0.1:{gateway.ops_port}/readyz")
    except DealerError:
        return "does not start", "–"
    if unexpected:
        raise AssertionError(unexpected[0])
    return says, "–" if ready.count("\n") == 2 and ready.startswith("ready") else "yes"


async def _use(service: Service, url: str, copy: Original) -> str:
    await service.feed.reader.read(Place(1), FeedFilter(key=1))  # as the webhook of the key does
    live_table = await service.lifecycle.load(copy.open)
    await service.execute(live_table, AddNote(HOST, "test", "a note"))
    for table in (copy.open, copy.closed, copy.archived):
        answer = await asyncio.to_thread(_get, f"{url}/tables/{table}/bundle.jsonl")
        if not answer.startswith("{"):
            return "refuses the table"
        if not verify(read(answer.encode())).ok:
            return "sends a bundle that does not verify"
    return "–"


def _get(url: str) -> str:
    """The content at a URL, or the status of the refusal."""
    try:
        with urlopen(url, timeout=SECONDS) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        return str(error.code)


def ask_command(*arguments: str) -> str:
    """Whether a command says that something is wrong."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        try:
            dealer(arguments)
        except SystemExit as exited:
            return "yes" if exited.code else "–"
    raise AssertionError("a command ends with SystemExit")


def try_change(change: Change, original: Original) -> Noticed:
    with tempfile.TemporaryDirectory(prefix="dealer-column-") as folder:
        copy = original.copy(Path(folder, "server"))
        apply(change, copy)
        audited = [
            ask_command("audit", one, "--database", copy.url) for one in (copy.open, copy.closed)
        ]
        again = copy.copy(Path(folder, "again"))
        server, ready = asyncio.run(ask_server(again))
        return Noticed(
            server,
            ready,
            "yes" if "yes" in audited else "–",
            ask_command("rebuild", "--database", copy.url),
        )


# The table in CHANGED_COLUMNS.md

EFFECTS = {
    "`event.id`": "the feed finds new events by it, and may send one later",
    "`event.command`": "sent again, the command is carried out again",
    "`event.digest`": "the honest client that sends its command again is refused",
    "`event.hidden`, of a closed round": "a face: refused when it is read for its player",
    "`event.hidden`, an open round's secret": "the secret of all faces of the round",
    "`event.hidden`, a closed round's secret": "refused when a card is read for its player",
    "`event.": "another fact, time or face",
    "`event`, the newest row deleted, and": "an older state: its players' clients notice it, too",
    "`event`, the newest row moved": "a fact is another table's",
    "`event`": "a fact is gone",
    "`checkpoint.note`, older": "what the house signed: a load checks the newest, verifiers all",
    "`checkpoint`, a row that is not due": "it shows nothing that others do not",
    "`checkpoint": "what the house signed, and of which table",
    "`stream.projected`": "read models are made again, or lag until the next event",
    "`stream.cosigned`": "nodes read the cosignatures again",
    "`stream": "which events are a table's, and how many",
    "`house.value`, its home": "the database seems to be a copy, or not to be one",
    "`house": "whose log it is; a start says which row is wrong",
    "`archived.stream`": "which table counts as archived",
    "`archived.at`": "a date for operators",
    "`archived": "which file is the bundle, and what it must be",
    "`broadcast_link": "a link of a table whose rules allow one is refused, or is valid again "
    "after it was taken back: it shows no more and no earlier than the rules say",
    "`disabled": "another table or server is disabled",
    "`feed": "services get public events later, twice, not at all, or of other services",
    "`journal": "what operators did; the first id is the log's name in its high-water marks",
    "`node": "who seems to be connected, for some seconds",
    "`presence": "who seems to be connected, for some seconds",
    "`opener": "how many tables of one network the lobby lists",
    "`seat_subject": "another user is named to a service; a changed seat gives no client one",
    "`service_": "another server acts as a service, also for its users' seats",
    "`table_savepoint": "none: a savepoint that does not lead to the signed root is ignored",
    "`webhook": "public events are sent elsewhere; a secret counts for its address only",
}
"""What a change does, by the beginning of its name: the first that fits."""

OF_MODELS = "wrong answers to SQL, until the rows are made again"

HEADER = "| changed | server | `/readyz` | `dealer audit` | `dealer rebuild` | effect |"
ALL = "every column of "


def effect_of(what: str) -> str:
    """What a change does; `what` is its name."""
    if what.strip("`").partition(".")[0] in {model.name for model in MODELS}:
        return OF_MODELS
    return next(effect for name, effect in EFFECTS.items() if what.startswith(name))


def table_lines(found: Iterable[tuple[Change, Noticed]]) -> list[str]:
    """The lines of the table: first what stops a server, then what others notice, then the rest.

    Changes of one SQL table with the same result are one line, and so are SQL tables of which each
    column has this result.
    """
    groups: dict[tuple[str, str, Noticed], list[str]] = {}
    for change, noticed in found:
        column, _, which = change.what.partition("`, ")
        sql_table, _, name = column.strip("`").partition(".")
        key = (sql_table, which, noticed._replace(effect=effect_of(change.what)))
        groups.setdefault(key, []).append(name)
    lines: dict[tuple[str, Noticed], list[str]] = {}
    for (sql_table, which, noticed), columns in groups.items():
        if not which and len(columns) == len(metadata.tables[sql_table].columns) > 1:
            lines.setdefault((ALL, noticed), []).append(f"`{sql_table}`")
        else:
            lines[_changed(sql_table, which, columns), noticed] = []
    ordered = sorted(lines.items(), key=lambda line: _place(line[0][1]))
    return [
        f"| {changed}{', '.join(tables)} | {' | '.join(noticed)} |"
        for (changed, noticed), tables in ordered
    ]


def _place(noticed: Noticed) -> int:
    return 0 if noticed.server != "–" else 1 if set(noticed[:4]) != {"–"} else 2


def _changed(sql_table: str, which: str, columns: list[str]) -> str:
    names = "" if columns == [""] else ": " + ", ".join(f"`{name}`" for name in columns)
    return f"`{sql_table}`{', ' + which if which else ''}{names}"


def documented() -> dict[str, Noticed]:
    """What the table in CHANGED_COLUMNS.md says, by change."""
    found = {}
    for line in _lines_of(DOCUMENT.read_text(encoding="utf-8"))[2:]:
        changed, *rest = (cell.strip() for cell in line.strip("|").split(" |"))
        for what in _changes_of(changed):
            found[what] = Noticed(*rest)
    return found


def _changes_of(changed: str) -> Iterator[str]:
    """The names of the changes in the first cell of a line."""
    if changed.startswith(ALL):
        for sql_table in changed.removeprefix(ALL).replace("`", "").split(", "):
            yield from (f"`{sql_table}.{one.name}`" for one in metadata.tables[sql_table].columns)
        return
    first, _, columns = changed.partition(": ")
    sql_table, _, which = first.partition(", ")
    for column in columns.split(", "):
        name = f"{sql_table}.{column}".replace("`", "").rstrip(".")
        yield f"`{name}`, {which}" if which else f"`{name}`"


def _lines_of(document: str) -> list[str]:
    return document[document.index(HEADER) :].rstrip("\n").split("\n")


def main() -> int:
    chosen = [name for name in sys.argv[1:] if name != "--write"]
    wanted = [
        change for change in changes() if not chosen or change.what[1:].startswith(tuple(chosen))
    ]
    with tempfile.TemporaryDirectory(prefix="dealer-columns-") as folder:
        made = make(Path(folder))
        found = []
        for change in wanted:
            found.append((change, try_change(change, made)))
            print(f"{len(found)} of {len(wanted)}: {change.what}", file=sys.stderr)
    lines = [HEADER, "|---|---|---|---|---|---|", *table_lines(found)]
    print("\n".join(lines))
    if "--write" in sys.argv and not chosen:
        document = DOCUMENT.read_text(encoding="utf-8")
        document = document.replace("\n".join(_lines_of(document)), "\n".join(lines))
        DOCUMENT.write_text(document, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
