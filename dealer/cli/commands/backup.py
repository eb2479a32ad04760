"""`dealer backup` and `dealer restore`: all that a house needs, in one folder with hashes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.options import Database, HouseKey, Operator, option, usage_errors, whoami
from dealer.cli.output import echo, echo_err
from dealer.config import DATABASE

if TYPE_CHECKING:
    ArchiveFolder = Path | None
    Packs = Path | None
    Games = Path | None
else:
    ArchiveFolder, Packs, Games = option("archive"), option("packs"), option("games")


def backup(
    to: Annotated[Path, typer.Argument(metavar="TO", help="A new folder.", show_default=False)],
    database: Database = DATABASE,
    house_key: HouseKey = None,
    archive: ArchiveFolder = None,
    packs: Packs = None,
    games: Games = None,
    operator: Operator = None,
) -> None:
    """Back up the database, the keys, the archive, packs and games, while servers run.

    An SQLite database is copied as of one moment. Of a PostgreSQL database the folder must have the
    dump already, as dealer.dump, and this command adds what pg_dump does not have. The list
    SHA256SUMS is written last: a folder without it is no backup. The folder shows every card of
    open rounds; store it where no other user can read it.

    ```
    dealer backup /backups/today --archive /var/lib/dealer/archive
    mkdir -m 700 today && pg_dump --format=custom --file today/dealer.dump dealer
    dealer backup today --database postgresql://dealer@db/dealer --house-key key
    ```
    """
    from dealer.service.operations.backup import Folders, back_up

    folders = Folders(archive, packs, games)
    with usage_errors():
        done = asyncio.run(
            back_up(database, to, house_key=house_key, folders=folders, who=operator or whoami())
        )
    echo(f"{done.files} files, {done.size} bytes, are in {to}.")
    if done.missing:
        where = f"in {archive}" if archive else "in the backup, without --archive"
        echo_err(f"Bundles of archived tables that are not {where}: {done.missing}.")


def restore(
    source: Annotated[
        Path, typer.Argument(metavar="FROM", help="The folder of a backup.", show_default=False)
    ],
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            help="Nothing was played after this backup, so open tables continue.",
        ),
    ] = False,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    archive: ArchiveFolder = None,
    packs: Packs = None,
    games: Games = None,
    operator: Operator = None,
) -> None:
    """Restore a backup of `dealer backup`, with every server stopped.

    All hashes are checked first, and no other file is replaced. An SQLite database must not be
    there yet; a PostgreSQL database has been restored with pg_restore before. The next start of any
    server closes the open tables, unless the marks show that nothing is lost.

    ```
    dealer restore /backups/today --archive /var/lib/dealer/archive
    pg_restore --exit-on-error --dbname dealer today/dealer.dump
    dealer restore today --database postgresql://dealer@db/dealer --house-key key
    ```
    """
    from dealer.service.operations import backup as backups

    folders = backups.Folders(archive, packs, games)
    with usage_errors():
        files = asyncio.run(
            backups.restore(
                database,
                source,
                house_key=house_key,
                folders=folders,
                complete=complete,
                who=operator or whoami(),
            )
        )
    echo(f"{files} files are restored from {source}.")
    then = "continue" if complete else "are closed unless the marks show that nothing is lost"
    echo(f"Start the servers: open tables {then}.")
