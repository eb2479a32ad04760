"""Services: their keys, `dealer key`, and the addresses that get their feed, `dealer webhook`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dealer.cli import options
from dealer.cli.output import echo, echo_err, format_time, safe_text, say_json
from dealer.errors import ConfigurationError

if TYPE_CHECKING:
    from dealer.eventlog import Log
    from dealer.eventlog.services import StoredKey, StoredWebhook
    from dealer.service.identity.admin import AdminService
    from dealer.service.operations.webhooks import WebhookAdmin

key = options.Commands(
    help="Keys by which other servers use this one: open tables, seat players, read what happens."
)
webhook = options.Commands(
    help="Addresses of other servers to which the events of a service key's tables are sent."
)

takes_name = click.argument("name", help="The key's name: a-z, 0-9, full stop, hyphen, underscore.")


@key.command(
    "add",
    help="""Make a key for another server, and print it.

    The key is printed once and stored nowhere: the database has its digest. Every server on this
    database accepts it within a second. Names of revoked keys cannot be used again.

    ```
    dealer key add shop --may open,seat,read > shop.key
    dealer key add support --may admin --why "the support desk"
    ```
    """,
)
@takes_name
@options.given(
    "--may",
    "RIGHTS",
    "What the key may do, separated by commas: open (tables and rounds), seat (make "
    "tickets, remove players, choose the host), read, close, each at the tables that it "
    "opened; admin is all of that at every table.",
    required=True,
)
@options.takes("why", "database", "operator")
async def add_key(name: str, may: str, why: str, database: str, operator: str | None) -> None:
    from dealer.service.identity.service_keys import check_key

    rights = [right.strip() for right in may.split(",") if right.strip()]
    with options.usage_errors():
        check_key(name, rights)
    async with _admin(database, operator) as admin:
        key = await admin.add_service_key(name, rights, why=why)
    echo_err(f"The key {name}, which is not shown again; send it as `Authorization: Bearer KEY`:")
    echo(key)


@key.command(
    "list",
    help="""List the keys, valid and revoked, with their rights, by name.

    ```
    dealer key list
    dealer key list --json | jq 'select(.revoked_at == null)'
    ```
    """,
)
@options.takes("database", "as_json")
async def list_keys(database: str, as_json: bool) -> None:
    stored = await _read_keys(database)
    for key in stored:
        say_json(_shown_key(key)) if as_json else echo(_line_of_key(key))
    if not stored and not as_json:
        echo("This database has no keys; `dealer key add` makes one.")


@key.command(
    help="""
    Revoke a key permanently: within a second every server refuses it and ends its connections.

    Tables that it opened stay open; operators, hosts and keys with the right admin can close them.

    ```
    dealer key revoke shop --why "was in a public repository"
    ```
    """
)
@takes_name
@options.takes("required_why", "database", "operator")
async def revoke(name: str, why: str, database: str, operator: str | None) -> None:
    if name not in {key.name for key in await _read_keys(database)}:
        raise ConfigurationError(f"There is no key {name!r}; `dealer key list` lists the keys.")
    async with _admin(database, operator) as admin:
        changed = await admin.revoke_service_key(name, why=why)
    echo(f"The key {name} is revoked." if changed else f"The key {name} was already revoked.")


@asynccontextmanager
async def _admin(database: str, operator: str | None) -> AsyncIterator[AdminService]:
    from dealer.service.identity.admin import AdminService

    async with options.existing_log(database) as log:
        yield AdminService(log, who=operator or options.whoami())


async def _read_keys(database: str) -> list[StoredKey]:
    from dealer.eventlog.services import stored_keys

    async with options.read_log(database) as log:
        return await stored_keys(log)


def _shown_key(key: StoredKey) -> dict[str, Any]:
    shown = key._asdict() | {"rights": key.rights.split()}
    del shown["digest"]
    return shown


def _line_of_key(key: StoredKey) -> str:
    revoked = "" if key.revoked_at is None else f"revoked {format_time(key.revoked_at)[:16]}"
    rights = ",".join(key.rights.split())
    return f"{key.name:<20}  {rights:<26}  {format_time(key.created_at)[:16]}  {revoked}".rstrip()


takes_number = click.argument("number", type=int, help="As `dealer webhook list` shows it.")


@webhook.command(
    "add",
    help="""
    Send the events of a service key's tables to a URL, and print what verifies the requests.

    Requests are CloudEvents signed as Standard Webhooks specify. The secret is printed once; the
    database has it encrypted under the house key.

    ```
    dealer webhook add https://shop.example.org/dealer --key shop
    dealer webhook add https://bot.example.org/ --key bots --type RoundClosed --sign ed25519
    ```
    """,
)
@click.argument("url", help="The address that they are sent to.")
@options.given("--key", "NAME", "The service key whose tables' events are sent.", required=True)
@options.given(
    "--type", "TYPE", "Only events of this type; may be repeated.", "types", multiple=True
)
@options.given("--after", "POSITION", "start, now, or a position of the feed.", default="now")
@options.given(
    "--sign",
    "[hmac|ed25519]",
    "hmac with a shared secret, or ed25519, whose key only this house has.",
    type=click.Choice(["hmac", "ed25519"]),
    default="hmac",
)
@options.flag("--allow-private", "Allow http, and addresses outside the public internet.")
@options.takes("why", "database", "house_key", "operator")
async def add_webhook(
    url: str,
    key: str,
    types: tuple[str, ...],
    after: str,
    sign: str,
    allow_private: bool,
    why: str,
    database: str,
    house_key: Path | None,
    operator: str | None,
) -> None:
    from dealer.eventlog.keys import existing_house_keys, key_file

    with options.usage_errors():
        async with _webhook_admin(database, operator) as (log, admin):
            number, verifier = await admin.add(
                await existing_house_keys(log, key_file(database, house_key)),
                url,
                key=key,
                types=types,
                signing=sign,
                after=after,
                allow_private=allow_private,
                why=why,
            )
    kind = "The secret" if sign == "hmac" else "The public key"
    echo_err(f"Webhook {number}. {kind}, which is not shown again:")
    echo(verifier)


@webhook.command(
    "list",
    help="""List the webhooks: what they get, how far they are, and what fails.

    ```
    dealer webhook list
    dealer webhook list --json | jq 'select(.disabled_at != null)'
    ```
    """,
)
@options.takes("database", "as_json")
async def list_webhooks(database: str, as_json: bool) -> None:
    stored = await _read_webhooks(database)
    for webhook, key in stored:
        say_json(_shown(webhook, key)) if as_json else echo(safe_text(_line(webhook, key)))
    if not stored and not as_json:
        echo("This database has no webhooks; `dealer webhook add` makes one.")


@webhook.command(
    help="""Remove a webhook; what it did not get yet is not sent.

    ```
    dealer webhook remove 2 --why "the shop reads the feed now"
    ```
    """
)
@takes_number
@options.takes("why", "database", "operator")
async def remove(number: int, why: str, database: str, operator: str | None) -> None:
    async with _webhook_admin(database, operator) as (_, admin):
        _require(number, await admin.remove(number, why=why))
    echo(f"Webhook {number} is removed.")


@webhook.command(
    help="""Deliver again to a webhook that was switched off, from where it stopped.

    ```
    dealer webhook enable 2 --why "the shop's server is back"
    ```
    """
)
@takes_number
@options.takes("why", "database", "operator")
async def enable(number: int, why: str, database: str, operator: str | None) -> None:
    async with _webhook_admin(database, operator) as (_, admin):
        _require(number, await admin.enable(number, why=why))
    echo(f"Webhook {number} is enabled.")


@webhook.command(
    help="""Send events again, or skip some: deliver what follows a position.

    ```
    dealer webhook replay 2 --from start
    ```
    """
)
@takes_number
@options.given(
    "--from", "POSITION", "start, now, or a position of the feed.", "position", required=True
)
@options.takes("why", "database", "operator")
async def replay(number: int, position: str, why: str, database: str, operator: str | None) -> None:
    async with _webhook_admin(database, operator) as (_, admin):
        _require(number, await admin.replay(number, position, why=why))
    echo(f"Webhook {number} continues from there.")


@asynccontextmanager
async def _webhook_admin(
    database: str, operator: str | None
) -> AsyncIterator[tuple[Log, WebhookAdmin]]:
    from dealer.service.operations.webhooks import WebhookAdmin

    async with options.existing_log(database) as log:
        yield log, WebhookAdmin(log, who=operator or options.whoami())


def _require(number: int, found: bool) -> None:
    if not found:
        raise ConfigurationError(f"There is no webhook {number}; `dealer webhook list` lists them.")


async def _read_webhooks(database: str) -> list[tuple[StoredWebhook, str]]:
    from dealer.eventlog.services import stored_keys, stored_webhooks

    async with options.read_log(database) as log:
        names = {
            key.id: key.name if key.revoked_at is None else f"{key.name} (revoked)"
            for key in await stored_keys(log)
        }
        return [(each, names.get(each.key, "")) for each in await stored_webhooks(log)]


def _shown(webhook: StoredWebhook, key: str) -> dict[str, Any]:
    shown = webhook._asdict() | {"key": key, "types": webhook.types.split()}
    shown["allow_private"] = bool(webhook.allow_private)
    for name in ("secret", "owner", "lease_ms"):
        del shown[name]
    return shown


def _line(webhook: StoredWebhook, key: str) -> str:
    state = "delivers"
    if webhook.disabled_at is not None:
        state = f"off since {format_time(webhook.disabled_at)[:16]}: {webhook.problem}"
    elif webhook.failing_since is not None:
        state = f"fails since {format_time(webhook.failing_since)[:16]}: {webhook.problem}"
    elif webhook.problem:
        state = f"delivers, but a table waits: {webhook.problem}"
    types = ",".join(webhook.types.split()) or "all types"
    return f"{webhook.id}  {webhook.url}  {key}  {types}  after {webhook.position}  {state}"
