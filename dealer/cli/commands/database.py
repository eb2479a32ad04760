"""The database: migrate, rebuild, backup, restore, the operators' journal, a new house key."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from dealer.cli import options
from dealer.cli.output import echo, echo_err, format_time, progress, safe_text, say_json
from dealer.errors import HouseKeyError, amount

if TYPE_CHECKING:
    from dealer.projector.rebuild import Difference, Rebuild

SHOWN = 10


@options.command(
    help="""Migrate the database's schema to the newest version, or create it.

    `dealer serve` does this automatically for an SQLite file when it starts, and never for
    PostgreSQL, which other servers may be using. It does not change the content of events.

    ```
    dealer migrate --database sqlite:////var/lib/dealer/dealer.db
    dealer migrate --database postgresql://dealer@db/dealer
    dealer migrate --database postgresql://dealer@coordinator/dealer --shards 32
    ```
    """
)
@options.takes("database", "operator", "as_json")
@options.given(
    "--shards",
    "N",
    "Distribute an empty database over the workers of a Citus cluster, in so many shards.",
    type=click.IntRange(1, 1024),
)
async def migrate(database: str, operator: str | None, as_json: bool, shards: int | None) -> None:
    from dealer.eventlog import Log
    from dealer.eventlog.backends import check_address, migrate_database, revision
    from dealer.service.identity.admin import record_schema

    with options.usage_errors():
        check_address(database)
    found = await revision(database)
    await migrate_database(database, shards=shards)
    async with await Log.open(database) as log:
        # If several processes migrate at once, the one that records it did it.
        recorded = await record_schema(log, who=operator or options.whoami())
    now = await revision(database)
    before = now
    if recorded is not None:
        before = recorded[0] or (found if found != now else None)
    if as_json:
        say_json({"from": before, "to": now})
        return
    if before == now:
        echo(f"The schema is {now}, the newest; nothing was changed.")
    else:
        echo(f"The schema was {before or 'empty'} and is now {now}.")


@options.command(
    help="""Replay the log into new read models, compare them with the old ones and replace those.

    The read models are the SQL tables for queries: tables, seats, rounds, shuffles, swaps, moves,
    deck, hands, piles. Servers may run meanwhile; readers never see a partial rebuild. Then every
    row of the log is compared with what the house signed; for the hidden parts of open rounds that
    needs the house key. The exit code is 1 if an old row does not follow from the log, if a row was
    missing, or if the log of a table is damaged.

    ```
    dealer rebuild
    dealer rebuild --json
    ```
    """
)
@options.takes("database", "house_key", "operator", "as_json")
async def rebuild(
    database: str, house_key: Path | None, operator: str | None, as_json: bool
) -> None:
    from dealer.projector.rebuild import Rebuild
    from dealer.service.identity.admin import AdminService
    from dealer.service.operations.log_check import find_damaged, keys_of

    async with options.existing_log(database) as log:
        begun = process_time()
        with progress("Replaying the log") as step:
            done = Rebuild(progress=step)
            await log.run_when_idle(done.slice)
        replayed = process_time()
        with progress("Checking the log") as step:
            damaged, partly = await find_damaged(log, await keys_of(database, house_key), step=step)
        spent = {"projection": replayed - begun, "check": process_time() - replayed}
        details = {
            "events": done.done,
            "different": done.different,
            "stopped": len(done.stopped),
            "damaged": len(damaged),
        }
        admin = AdminService(log, who=operator or options.whoami())
        await admin.note("rebuild", "read models", details=details)
    if as_json:
        rounded = {part: round(seconds, 3) for part, seconds in spent.items()}
        say_json(_members(done) | {"damaged": damaged, "cpu_seconds": rounded})
    else:
        _print_rebuild(done, damaged)
        parts = (f"{seconds:.1f} s for the {part}" for part, seconds in spent.items())
        echo(f"CPU: {', '.join(parts)}.")
    if partly:
        echo_err(
            "Without the house key (--house-key) the hidden parts of "
            f"{amount(partly, 'open round')} were not checked."
        )
    if done.different or done.stopped or damaged:
        raise Exit(1)


def _print_rebuild(done: Rebuild, damaged: list[str]) -> None:
    rows = amount(done.different, "row")
    echo(f"{amount(done.done, 'event was', 'events were')} replayed; {rows} differed from the log.")
    for difference in done.differences[:SHOWN]:
        was = "was present, but does not follow" if difference.in_old else "was missing"
        row = ", ".join(f"{name}={value!r}" for name, value in _columns(difference).items())
        echo(safe_text(f"{difference.model}: {row} {was}"))
    if done.different > SHOWN:
        echo(f"and {done.different - SHOWN} more")
    for sentence in damaged:
        echo(safe_text(sentence))
    for stopped in done.stopped.values():
        if not any(stopped.table in sentence for sentence in damaged):
            echo(f"table {stopped.table} stops at version {stopped.version}: {stopped.sentence}")


def _columns(difference: Difference) -> dict[str, Any]:
    from dealer.projector.models import MODELS

    (model,) = (one for one in MODELS if one.name == difference.model)
    _, *names = model.columns
    # A model refers to the log's rows by the table's id on PostgreSQL, by its number on SQLite.
    first = "table_id" if isinstance(difference.row[0], str) else "stream"
    return dict(zip((first, *names), difference.row, strict=True))


def _members(done: Rebuild) -> dict[str, Any]:
    return {
        "events": done.done,
        "different": done.different,
        "differences": [
            {"model": difference.model, "row": _columns(difference), "stood": difference.in_old}
            for difference in done.differences
        ],
        "stopped": [stopped._asdict() for stopped in done.stopped.values()],
    }


@options.command(
    help="""Print the operators' journal of this database, the newest line first.

    Lines are named disable, enable, close, archive, backup, restore-backup, rotate-key, rebuild,
    migrate, forget, add-webhook, remove-webhook, enable-webhook, replay-webhook, add-service-key
    and revoke-service-key after the change, and are written in its transaction if possible.
    `rotate-key --retire` adds retire-key for each key that it destroys, and keep-key for each that
    it keeps after all, because a table was opened under it. A server adds `restore` if its database
    was older than what players had seen, or may be, and it closed the open tables;
    `disable-webhook` for a webhook that fails; and a line for each player that a service removes,
    each host that it chooses and each table that it closes, as the operator `key:NAME`. The
    database does not allow lines to be changed or deleted.

    ```
    dealer journal
    dealer journal --json | jq 'select(.what == "archive")'
    ```
    """
)
@options.takes("lines", "database", "as_json")
async def journal(limit: int, database: str, as_json: bool) -> None:
    from dealer.service.identity.admin import read_journal

    async with options.read_log(database) as log:
        for line in await read_journal(log, limit=limit):
            if as_json:
                say_json({name: value for name, value in line._asdict().items() if name != "id"})
                continue
            details = json.dumps(line.details, ensure_ascii=False) if line.details else ""
            rest = "  ".join(filter(None, (line.target, line.why, details)))
            echo(safe_text(f"{format_time(line.at)[:19]}  {line.who}  {line.what}  {rest}"))


@options.command(
    help="""Back up the database, the keys, the archive, packs and games, while servers run.

    An SQLite database is copied as of one moment. For a PostgreSQL database the folder must have
    the dump already, as dealer.dump, and this command adds what pg_dump does not have. The list
    SHA256SUMS is written last: a folder without it is no backup. The folder shows every card of
    open rounds; store it where no other user can read it.

    ```
    dealer backup /backups/today --archive /var/lib/dealer/archive
    mkdir -m 700 today && pg_dump --format=custom --file today/dealer.dump dealer
    dealer backup today --database postgresql://dealer@db/dealer --house-key key
    ```
    """
)
@click.argument("to", type=options.PATH, help="A new folder.")
@options.takes("database", "house_key", "archive", "packs", "games", "operator")
async def backup(
    to: Path,
    database: str,
    house_key: Path | None,
    archive: Path | None,
    packs: Path | None,
    games: Path | None,
    operator: str | None,
) -> None:
    from dealer.service.operations.backup import Folders, back_up

    folders = Folders(archive, packs, games)
    with options.usage_errors():
        done = await back_up(
            database, to, house_key=house_key, folders=folders, who=operator or options.whoami()
        )
    files = amount(done.files, "file is", "files are")
    echo(f"{files} in {to}, {amount(done.size, 'byte')}.")
    if done.missing:
        where = f"in {archive}" if archive else "in the backup, without --archive"
        echo_err(f"Bundles of archived tables that are not {where}: {done.missing}.")


@options.command(
    help="""Restore a backup of `dealer backup`, with every server stopped.

    All hashes are checked first, and no other file is replaced. An SQLite database must not be
    there yet; a PostgreSQL database has been restored with pg_restore before. The next start of any
    server closes the open tables, unless the marks show that nothing is lost.

    ```
    dealer restore /backups/today --archive /var/lib/dealer/archive
    pg_restore --exit-on-error --dbname dealer today/dealer.dump
    dealer restore today --database postgresql://dealer@db/dealer --house-key key
    ```
    """
)
@click.argument("source", type=options.PATH, metavar="FROM", help="The folder of a backup.")
@options.flag("--complete", "Nothing was played after this backup, so open tables continue.")
@options.takes("database", "house_key", "archive", "packs", "games", "operator")
async def restore(
    source: Path,
    complete: bool,
    database: str,
    house_key: Path | None,
    archive: Path | None,
    packs: Path | None,
    games: Path | None,
    operator: str | None,
) -> None:
    from dealer.service.operations import backup as backups

    folders = backups.Folders(archive, packs, games)
    with options.usage_errors():
        files = await backups.restore(
            database,
            source,
            house_key=house_key,
            folders=folders,
            complete=complete,
            who=operator or options.whoami(),
        )
    echo(f"{amount(files, 'file is', 'files are')} restored from {source}.")
    then = "continue" if complete else "are closed unless the marks show that nothing is lost"
    echo(f"Start the servers: open tables {then}.")


@options.command(
    help="""Make a new house key, which signs and encrypts all tables from now on.

    Existing tables keep the key that their players know; it is stored next to the new one, with
    eight hex digits added to its name. A running server uses the new key within a second; on other
    machines, once all key files are copied there, and it opens no tables until then. Back up the
    keys immediately. When all tables of an earlier key are archived, --retire deletes that key; in
    a backup that has such tables they are unavailable without it. The next call finishes an
    interrupted one.

    ```
    dealer rotate-key --why "yearly"
    dealer rotate-key --retire
    ```
    """
)
@options.takes("why")
@options.flag("--retire", "Destroy earlier keys that no table here needs any more.")
@options.takes("database", "house_key", "operator")
async def rotate_key(
    why: str, retire: bool, database: str, house_key: Path | None, operator: str | None
) -> None:
    from dealer.service.operations.key_rotation import retire_keys, rotate

    who = operator or options.whoami()
    if retire:
        deleted, stayed = await retire_keys(database, why, who, house_key=house_key, wait=_wait)
        for name in deleted:
            echo(f"{name} is deleted; destroy its copies when no backup needs them.")
        if stayed:
            raise HouseKeyError(
                f"A table was opened meanwhile with the key {', '.join(stayed)}, which is kept: a "
                "server has not the new key. Copy the key files there, and archive that table."
            )
        if not deleted:
            echo("No key was deleted: each earlier key here still has tables.")
        return
    if not why:
        raise click.BadParameter("Give the reason with --why, for the operators' journal.")
    finished, old = await rotate(database, why, who, house_key=house_key)
    echo("The interrupted rotation is finished." if finished else "The house has a new key.")
    echo(f"The earlier one is {old}; back up both.")


async def _wait(seconds: float) -> None:
    echo_err(f"Waiting {seconds:.1f} s, so that running servers notice it.")
    await asyncio.sleep(seconds)
