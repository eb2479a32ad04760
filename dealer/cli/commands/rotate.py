"""`dealer rotate-key`: a new house key for new tables; existing tables keep theirs."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from dealer.cli.options import Database, HouseKey, Operator, whoami
from dealer.cli.output import echo, echo_err
from dealer.config import DATABASE
from dealer.errors import HouseKeyError


def rotate_key(
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="The reason, for the journal.")
    ] = "",
    retire: Annotated[
        bool,
        typer.Option("--retire", help="Destroy earlier keys that no table here needs any more."),
    ] = False,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    operator: Operator = None,
) -> None:
    """Make a new house key, which signs and encrypts all tables from now on.

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
    from dealer.service.operations.key_rotation import retire_keys, rotate

    who = operator or whoami()
    if retire:
        retiring = retire_keys(database, why, who, house_key=house_key, wait=_wait)
        deleted, stayed = asyncio.run(retiring)
        for name in deleted:
            echo(f"{name} is deleted; destroy its backups, too.")
        if stayed:
            raise HouseKeyError(
                f"A table was opened meanwhile with the key {', '.join(stayed)}, which is kept: a "
                "server has not the new key. Copy the key files there, and archive that table."
            )
        if not deleted:
            echo("No key was deleted: each earlier key here still has tables.")
        return
    if not why:
        raise typer.BadParameter("Give the reason with --why, for the operators' journal.")
    finished, old = asyncio.run(rotate(database, why, who, house_key=house_key))
    echo("The interrupted rotation is finished." if finished else "The house has a new key.")
    echo(f"The earlier one is {old}; back up both.")


async def _wait(seconds: float) -> None:
    echo_err(f"Waiting {seconds:.1f} s, so that running servers notice it.")
    await asyncio.sleep(seconds)
