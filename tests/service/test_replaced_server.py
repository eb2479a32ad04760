"""A primary that a standby replaced is refused when it comes back: at a start and while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dealer.errors import DatabaseUnavailable, ServerReplaced
from dealer.eventlog.backends import migrate_database
from dealer.eventlog.high_water_mark import read_marks
from dealer.eventlog.postgres.database import PostgresDatabase
from dealer.game.commands import Actor, Draw
from dealer.service.build import open_service
from dealer.service.operations import restore_check
from dealer.service.operations.backup import DUMP, Folders, back_up
from dealer.service.operations.key_rotation import retire_keys, rotate
from tests.gateway.rpc_client import eventually
from tests.harness.ports import unused_port
from tests.harness.postgres import OwnServer, own_server
from tests.service.tables import shuffled_table

pytestmark = pytest.mark.slow

REPLACED = r"was replaced: it is on timeline 1, and this node has used timeline 2"


class Pair(NamedTuple):
    """A primary and its standby; one address has both, and takes the one that accepts writes."""

    primary: OwnServer
    standby: OwnServer
    url: str


@pytest.fixture
def pair() -> Iterator[Pair]:
    with (
        own_server(safe=True, port=unused_port()) as primary,
        own_server(safe=True, port=unused_port(), standby_of=primary) as standby,
    ):
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        name = primary.empty()
        address = f"postgresql://dealer@{hosts}/{name}?target_session_attrs=read-write"
        yield Pair(primary, standby, address)


async def test_a_stale_primary_is_refused(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_check, "MARK_SECONDS", 0.05)
    primary, standby, url = pair
    key = tmp_path / "house.key"
    await migrate_database(url)
    async with open_service(url, house_key=key, busy_seconds=2.0) as service:
        live_table = await shuffled_table(service)
        primary.stop("fast")  # it sends what it has written first
        standby.promote()
        await service.execute(live_table, Draw(Actor(seat=1)))
        await eventually(lambda: read_marks(key).databases[0].endswith("/00000002"))
        # The address leads to the old primary again, for the running node...
        primary.start()
        standby.stop("fast")
        with pytest.raises(DatabaseUnavailable, match=REPLACED):
            await service.log.metadata("any")
    # ... for a node that starts...
    closed = "SELECT count(*) FROM event WHERE type = 'TableClosed'"
    name = url.rpartition("/")[2].partition("?")[0]
    with pytest.raises(ServerReplaced, match=REPLACED):
        async with open_service(url, house_key=key):
            raise AssertionError("it opened")
    # ... and for those who would back up the wrong server, or change its keys...
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / DUMP).write_bytes(b"PGDMP")
    backup = back_up(url, tmp_path / "backup", house_key=key, folders=Folders(), who="test")
    for work in (
        backup,
        rotate(url, "", "test", house_key=key),
        retire_keys(url, "", "test", house_key=key),
    ):
        with pytest.raises(ServerReplaced, match=REPLACED):
            await work
    assert primary.ask(name, closed) == [(0,)], "no secret was published there"
    # ... until the server that took over is back: there the game goes on.
    primary.stop("fast")
    standby.start()
    async with open_service(url, house_key=key) as service:
        live_table = await service.lifecycle.load(live_table.table_id)
        await service.execute(live_table, Draw(Actor(seat=2)))


@pytest.mark.parametrize(
    ("found", "known", "refused"),
    [
        ("7/1/2/00000001", "7/1/2/00000002", True),
        ("7/1/2/00000009", "7/1/2/0000000A", True),
        ("7/8/9/00000001", "7/1/2/00000002", True),  # another database of the same cluster
        ("7/1/2/00000002", "7/1/2/00000002", False),
        ("7/1/2/00000003", "7/1/2/00000002", False),  # promoted, or recovered to a point in time
        ("8/1/2/00000001", "7/1/2/00000002", False),  # a dump, restored in another cluster
    ],
)
def test_which_server_was_replaced(found: str, known: str, refused: bool) -> None:
    database = PostgresDatabase("postgresql://dealer@127.0.0.1/dealer")
    if refused:
        with pytest.raises(ServerReplaced, match="was replaced"):
            database.require_newest(found, known)
    else:
        database.require_newest(found, known)
