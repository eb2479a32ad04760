"""`dealer key add, list, revoke`: keys of other people's servers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.options import (
    AsJson,
    Commands,
    Database,
    Operator,
    Why,
    existing_log,
    usage_errors,
    whoami,
)
from dealer.cli.output import echo, echo_err, format_time, say_json
from dealer.config import DATABASE

if TYPE_CHECKING:
    from dealer.eventlog.owners import StoredKey

app = Commands(
    no_args_is_help=True,
    help="Keys by which other servers use this one: open tables, seat players, read what happens.",
)

KeyName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The key's name: a-z, 0-9, full stop, hyphen, underscore.",
        show_default=False,
    ),
]


@app.command()
def add(
    name: KeyName,
    may: Annotated[
        str,
        typer.Option(
            metavar="RIGHTS",
            help="What the key may do, separated by commas: open (tables and rounds), seat (make "
            "tickets, remove players, choose the host), read, close, each at the tables that it "
            "opened; admin is all of that at every table.",
            show_default=False,
        ),
    ],
    why: Why = "",
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """Make a key for another server, and print it.

    The key is printed once and stored nowhere: the database has its digest. Every server on this
    database accepts it within a second. Names of revoked keys cannot be used again.

    ```
    dealer key add shop --may open,seat,read > shop.key
    dealer key add support --may admin --why "the support desk"
    ```
    """
    from dealer.service.identity.service_keys import check_key

    rights = [right.strip() for right in may.split(",") if right.strip()]
    with usage_errors():
        check_key(name, rights)
    key = asyncio.run(_add(name, rights, why, database, operator or whoami()))
    echo_err(f"The key {name}, which is not shown again; send it as `Authorization: Bearer KEY`:")
    echo(key)


@app.command("list")
def list_(database: Database = DATABASE, as_json: AsJson = False) -> None:
    """List the keys, valid and revoked, with their rights, by name.

    ```
    dealer key list
    dealer key list --json | jq 'select(.revoked_at == null)'
    ```
    """
    keys = asyncio.run(_read(database))
    for key in keys:
        say_json(_shown(key)) if as_json else echo(_line(key))
    if not keys and not as_json:
        echo("This database has no keys; `dealer key add` makes one.")


@app.command()
def revoke(
    name: KeyName,
    why: Why,
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """Revoke a key permanently: within a second every server refuses it and ends its connections.

    Tables that it opened stay open; operators, hosts and keys with the right admin can close them.

    ```
    dealer key revoke shop --why "was in a public repository"
    ```
    """
    changed = asyncio.run(_revoke(name, why, database, operator or whoami()))
    echo(f"The key {name} is revoked." if changed else f"The key {name} was already revoked.")


async def _add(name: str, rights: list[str], why: str, database: str, who: str) -> str:
    from dealer.service.identity.admin import AdminService

    async with existing_log(database) as log:
        return await AdminService(log, who=who).add_service_key(name, rights, why=why)


async def _read(database: str) -> list[StoredKey]:
    from dealer.eventlog.backends import open_readonly
    from dealer.eventlog.owners import stored_keys

    async with await open_readonly(database) as log:
        return await stored_keys(log)


async def _revoke(name: str, why: str, database: str, who: str) -> bool:
    from dealer.errors import ConfigurationError
    from dealer.eventlog import Log
    from dealer.service.identity.admin import AdminService

    if name not in {key.name for key in await _read(database)}:
        raise ConfigurationError(f"There is no key {name!r}; `dealer key list` lists the keys.")
    async with await Log.open(database) as log:
        return await AdminService(log, who=who).revoke_service_key(name, why=why)


def _shown(key: StoredKey) -> dict[str, Any]:
    shown = key._asdict() | {"rights": key.rights.split()}
    del shown["digest"]
    return shown


def _line(key: StoredKey) -> str:
    revoked = "" if key.revoked_at is None else f"revoked {format_time(key.revoked_at)[:16]}"
    rights = ",".join(key.rights.split())
    return f"{key.name:<20}  {rights:<26}  {format_time(key.created_at)[:16]}  {revoked}".rstrip()
