"""The tables of a database: `dealer tables` with its commands, and `dealer export`."""

from __future__ import annotations

import json
import shlex
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click

from dealer.cli import options as shared
from dealer.cli import output as terminal
from dealer.cli.commands import verify
from dealer.cli.options import age, table_id
from dealer.errors import DatabaseDamaged, Refused, TableIsClosed, amount


@click.command(
    cls=shared.Commands,
    invoke_without_command=True,
    help="""List the tables of this database, newest first, including closed ones.

    A line also says whether a round is open and whether the table is disabled.

    ```
    dealer tables
    dealer tables --json | jq -r .table
    ```
    """,
)
@shared.takes("lines", "database", "as_json")
@click.pass_context
async def tables(context: click.Context, /, limit: int, database: str, as_json: bool) -> None:
    if context.invoked_subcommand is not None:
        for name in ("limit", "database", "as_json"):
            origin = context.get_parameter_source(name)
            if origin is not None and origin.name == "COMMANDLINE":
                raise click.BadParameter(f"Give options after {context.invoked_subcommand}.")
        return
    found, archived, disabled = await _find(limit, database)
    for table in found:
        terminal.say_json(table) if as_json else terminal.echo(_line(table))
    if as_json:
        return
    if disabled:
        terminal.echo("The whole server is disabled; see `dealer journal`.")
    if archived:
        terminal.echo(f"{amount(archived, 'more is', 'more are')} archived; see `dealer journal`.")
    elif not found:
        terminal.echo("This database has no tables yet.")


async def _find(limit: int, database: str) -> tuple[list[dict[str, Any]], int, bool]:
    """The tables, how many more are archived, and whether the whole server is disabled."""
    from dealer.projector.queries import NEWER, newest_tables
    from dealer.service.commands.maintenance import WHOLE_SERVICE

    found = []
    async with shared.read_log(database) as log:
        ((archived,),) = await log.fetch("SELECT count(*) FROM archived")
        disabled = {target for (target,) in await log.fetch("SELECT target FROM disabled")}
        for row in await log.fetch(*newest_tables(log.dialect, limit)):
            stream, table_id, version, rounds, closed, seated, playing, *row = row
            lagging, projected, at, public = row
            if lagging:  # correct the read models by the events that they do not have yet
                newer = dict(map(tuple, await log.fetch(NEWER, (stream, projected))))
                rounds += newer.get("RoundOpened", 0)
                playing += newer.get("RoundOpened", 0) - newer.get("RoundClosed", 0)
                seated += newer.get("SeatTaken", 0)
                seated -= newer.get("SeatLeft", 0) + newer.get("SeatVacated", 0)
                closed = closed or "TableClosed" in newer
            found.append(
                {
                    "table": table_id.hex(),
                    "name": json.loads(public).get("name"),
                    "opened_at": at,
                    "seated": seated,
                    "rounds": rounds,
                    "round_open": playing > 0,
                    "version": version,
                    "closed": bool(closed),
                    "disabled": not disabled.isdisjoint((table_id.hex(), WHOLE_SERVICE)),
                }
            )
    return found, archived, WHOLE_SERVICE in disabled


def _line(table: dict[str, Any]) -> str:
    state = "closed" if table["closed"] else "open"
    marks = (
        "round open" * table["round_open"],
        "disabled" * (table["disabled"] and not table["closed"]),
    )
    rounds = f"{table['rounds']:>3} round{' ' if table['rounds'] == 1 else 's'}"
    name = table["name"] if isinstance(table["name"], str) else ""
    return (
        f"{table['table']}  {terminal.format_time(table['opened_at'])[:16]}  {state:<6}"
        f"  {table['seated']:>2} seated  {rounds}  version {table['version']:<6}"
        f"  {', '.join(filter(None, marks)):<20}  {terminal.safe_text(name)}"
    ).rstrip()


@shared.command(
    help="""Write a table's bundle: every event, and every checkpoint that the house signed.

    It proves each closed round swap by swap; of an open round it reveals no card.

    ```
    dealer export 7d02f3c2 -o game.jsonl
    dealer export 7d02f3c2 | dealer verify -
    ```
    """
)
@shared.takes("table")
@shared.given(
    "--output",
    "FILE",
    "A file; - or nothing for standard output.",
    "-o",
    default=terminal.STANDARD_OUTPUT,
    show_default=False,
)
@shared.takes("database", "house_key", "url")
async def export(
    table: str, output: str, database: str, house_key: Path | None, url: str | None
) -> None:
    with terminal.writing(output) as file:
        if url is not None:
            for line in verify.from_house(url, table):
                file.write(line + b"\n")
        else:
            with terminal.progress("Reading the log") as step:
                lines = verify.from_log(database, table, house_key=house_key, step=step)
                async with aclosing(lines):
                    async for line in lines:
                        file.write(line + b"\n")
    if terminal.is_stored(output):
        shown = shlex.quote(output)
        terminal.echo_err(
            f"The bundle is in {output}; check it with: {terminal.program()} verify {shown}"
        )


@tables.command(
    help="""Close tables permanently, with their open rounds, whose secrets become public.

    Use it for tables whose hosts are gone, before `dealer tables archive`; and with --idle 0m after
    an older backup was restored, because players who saw later events cannot trust its open tables.

    ```
    dealer tables close 7d02f3c2 --why "the host is gone"
    dealer tables close --idle 90d --why retention
    ```
    """
)
@shared.takes("required_why", "optional_table")
@shared.given("--idle", "AGE", "All open tables without an event for this long: 90d, 36h or 0m.")
@shared.takes("database", "house_key", "marks", "operator")
async def close(
    why: str,
    table: str | None,
    idle: str | None,
    database: str,
    house_key: Path | None,
    marks: Path | None,
    operator: str | None,
) -> None:
    from dealer.service.build import open_service
    from dealer.service.clock import utc_ms
    from dealer.service.identity.admin import AdminService
    from dealer.service.operations.close_tables import close_tables, open_tables

    if (table is None) == (idle is None):
        raise click.BadParameter("Give a table, or an age with --idle.")
    since = None if idle is None else age(idle, "--idle")
    async with shared.read_log(database):
        pass
    done = 0
    async with open_service(database, house_key=house_key, marks=marks) as service:
        admin = AdminService(service.log, who=operator or shared.whoami())
        if table is not None:
            wanted = [await shared.find_table(service.log, table)]
        else:
            # At 0m also tables whose events have a time in the future, from a clock that was wrong.
            before = utc_ms() - since if since else None
            wanted = await open_tables(service.log, before=before)
        async for table_id, error in close_tables(service, wanted):
            if error is None:
                await admin.note("close", table_id.hex(), why=why)
                done += 1
            elif isinstance(error, TableIsClosed):
                if table is not None:
                    raise TableIsClosed(f"Table {table_id.hex()} is closed already.") from None
            elif table is not None or not isinstance(error, Refused):
                raise error
            else:
                terminal.echo_err(f"{table_id.hex()} is left open: {error}")
    terminal.echo(f"{amount(done, 'table')} closed.")


takes_house = shared.flag("--house", "All tables of this database.")


@tables.command(
    help="""Stop new seats and rounds at a table, or at all tables, until `dealer tables enable`.

    No seat can be taken and no round opened; with --house no table can be opened either. Open
    rounds continue until they are closed, and players can leave and come back. Every server on this
    database applies it within a second, also one that starts later. The lobby does not list the
    table.

    ```
    dealer tables disable 7d02f3c2 --why "players complain of seat 3"
    dealer tables disable --house --why "moving to another machine"
    ```
    """
)
@shared.takes("required_why", "optional_table")
@takes_house
@shared.takes("database", "operator")
async def disable(
    why: str, table: str | None, house: bool, database: str, operator: str | None
) -> None:
    target, changed = await _change(table, house, database, operator, why, on=False)
    terminal.echo(f"{target} is disabled." if changed else f"{target} was already disabled.")


@tables.command(
    help="""End `dealer tables disable`: allow new seats and rounds again.

    ```
    dealer tables enable 7d02f3c2
    dealer tables enable --house --why "moved"
    ```
    """
)
@shared.takes("why", "optional_table")
@takes_house
@shared.takes("database", "operator")
async def enable(
    why: str, table: str | None, house: bool, database: str, operator: str | None
) -> None:
    target, changed = await _change(table, house, database, operator, why, on=True)
    terminal.echo(f"{target} is enabled." if changed else f"{target} was not disabled.")


async def _change(
    table: str | None, house: bool, database: str, operator: str | None, why: str, *, on: bool
) -> tuple[str, bool]:
    from dealer.service.commands.maintenance import WHOLE_SERVICE
    from dealer.service.identity.admin import AdminService

    if (table is None) == (not house):
        raise click.BadParameter("Give a table, or --house.")
    target, name = WHOLE_SERVICE, "The server"
    async with shared.read_log(database) as log:
        if table is not None:
            one = await shared.find_table(log, table)
            target, name = one.hex(), f"Table {one.hex()}"
            last = await log.read(one, after=(await log.head(one) or 0) - 1, limit=1)
            if last and last[0].type == "TableClosed" and not on:
                raise TableIsClosed(f"{name} is closed; no seat or round can be opened at it.")
    async with shared.existing_log(database) as log:
        admin = AdminService(log, who=operator or shared.whoami())
        change = admin.enable if on else admin.disable
        return name, await change(target, why=why)


@tables.command(
    help="""Write the bundles of closed tables to files, and delete their events from the database.

    Each bundle is verified, written, synced to disk, read and verified again; only then are the
    table's events deleted. The next call finishes an interrupted one. Back up the folder: it has
    the only copy of these tables. `dealer serve --archive FOLDER` serves the bundles.

    With --forget the bundle is written without the lines that open what names the person; the
    events stay. Both verifiers say how many are withheld; all else is verified as before.

    ```
    dealer tables archive --older-than 90d --to /var/lib/dealer/archive
    dealer tables archive 7d02f3c2 --to archive
    dealer tables archive 7d02f3c2 --to archive --forget Ann
    ```
    """
)
@shared.given(
    "--to",
    "FOLDER",
    "Folder for bundles.",
    type=shared.PATH,
    required=True,
    envvar="DEALER_ARCHIVE",
)
@shared.takes("optional_table")
@shared.given(
    "--older-than", "AGE", "All tables that were closed at least this long ago: 90d, 36h or 30m."
)
@shared.given(
    "--forget",
    "NAME-OR-SEAT",
    "Withhold what names this player: a name, or the number of a seat. Also for a table "
    "that is archived already.",
)
@shared.takes("why", "database", "operator")
async def archive(
    to: Path,
    table: str | None,
    older_than: str | None,
    forget: str | None,
    why: str,
    database: str,
    operator: str | None,
) -> None:
    if (table is None) == (older_than is None):
        raise click.BadParameter("Name a table, or give an age with --older-than.")
    if forget is not None and table is None:
        raise click.BadParameter("--forget is for one table: name it.")
    oldest = None if older_than is None else age(older_than, "--older-than")
    with shared.usage_errors():
        shared.require_folder(to)
    if forget is not None:
        await _forget(database, to, str(table), forget, why, operator or shared.whoami())
        return
    done, bad = await archive_tables(database, to, table, oldest, why, operator or shared.whoami())
    terminal.echo(f"{amount(done, 'table')} archived to {to}.")
    if bad:
        raise DatabaseDamaged(
            f"Not archived or deleted: {', '.join(bad)}. Check each table with "
            "`dealer audit TABLE`, and compare it with the bundles that its players saved."
        )


_SHOWN = 8
"""Versions of one place in which a name is left."""


async def _forget(database: str, folder: Path, text: str, who: str, why: str, by: str) -> None:
    from dealer.service.operations.archiver import Archiver, exclusive

    with terminal.progress("Reading the log") as step:
        async with exclusive(folder), shared.existing_log(database) as log:
            archiver = Archiver(log, database, folder, who=by, why=why, step=step)
            await archiver.finish_interrupted()
            table = await table_id(log, text)
            found = await archiver.forget(table, who)
    parts = "the names and texts of the interrupted run"
    if found.versions:
        versions = ", ".join(map(str, found.versions))
        parts = f"{amount(len(found.versions), 'name or text', 'names or texts')}: {versions}"
    terminal.echo(f"{archiver.file_of(table)} withholds {parts}.")
    for place, where in found.standing.items():
        more = f" and {len(where) - _SHOWN} more" if len(where) > _SHOWN else ""
        terminal.echo(
            f"The name is still in {place} (version {', '.join(map(str, where[:_SHOWN]))}{more})."
        )


async def archive_tables(
    database: str, folder: Path, table: str | None, age: int | None, why: str, who: str
) -> tuple[int, list[str]]:
    """Archive one table, or all closed for `age` milliseconds.

    Returns how many were archived, and the ids of those that could not be.
    """
    from dealer.service.operations.archiver import Archiver, exclusive

    with terminal.progress("Reading the log") as step:
        async with exclusive(folder), shared.existing_log(database) as log:
            archiver = Archiver(log, database, folder, who=who, why=why, step=step)
            await archiver.finish_interrupted()
            if table is not None:
                tables = [await shared.find_table(log, table)]
            else:
                tables = await archiver.closed_tables(age=age or 0)
            bad = []
            async for result in archiver.archive_all(tables):
                if result.error is None:
                    name = result.table.hex()
                    terminal.echo_err(
                        f"{name} is in {result.file}; {terminal.program()} verify checks it."
                    )
                elif table is not None:
                    raise result.error
                else:
                    terminal.echo_err(str(result.error))
                    bad.append(result.table.hex())
            return len(tables) - len(bad), bad
