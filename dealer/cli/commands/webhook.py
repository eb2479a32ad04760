"""`dealer webhook add, list, remove, enable, replay`: the feed sent to an address of a service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.options import (
    AsJson,
    Commands,
    Database,
    HouseKey,
    Operator,
    Why,
    existing_log,
    usage_errors,
    whoami,
)
from dealer.cli.output import echo, echo_err, format_time, safe_text, say_json
from dealer.config import DATABASE
from dealer.errors import ConfigurationError

if TYPE_CHECKING:
    from dealer.eventlog.webhooks import StoredWebhook
    from dealer.service.operations.webhooks import WebhookAdmin

app = Commands(
    no_args_is_help=True,
    help="Addresses of other servers to which the events of a service key's tables are sent.",
)

Number = Annotated[
    int,
    typer.Argument(metavar="NUMBER", help="As `dealer webhook list` shows it.", show_default=False),
]


class Signing(StrEnum):
    """How requests are signed."""

    HMAC = "hmac"
    ED25519 = "ed25519"


@app.command()
def add(
    url: Annotated[str, typer.Argument(metavar="URL", show_default=False)],
    key: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The service key whose tables' events are sent.",
            show_default=False,
        ),
    ],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only events of this type; may be repeated."),
    ] = None,
    after: Annotated[
        str, typer.Option(metavar="POSITION", help="start, now, or a position of the feed.")
    ] = "now",
    sign: Annotated[
        Signing,
        typer.Option(help="hmac with a shared secret, or ed25519, whose key only this house has."),
    ] = Signing.HMAC,
    allow_private: Annotated[
        bool,
        typer.Option(
            "--allow-private", help="Allow http, and addresses outside the public internet."
        ),
    ] = False,
    why: Why = "",
    database: Database = DATABASE,
    house_key: HouseKey = None,
    operator: Operator = None,
) -> None:
    """Send the events of a service key's tables to a URL, and print what verifies the requests.

    Requests are CloudEvents signed as Standard Webhooks specify. The secret is printed once; the
    database has it encrypted under the house key.

    ```
    dealer webhook add https://shop.example.org/dealer --key shop
    dealer webhook add https://bot.example.org/ --key bots --type RoundClosed --sign ed25519
    ```
    """

    async def adding() -> tuple[int, str]:
        from dealer.eventlog.key_file import existing_house_keys, key_file
        from dealer.service.operations.webhooks import WebhookAdmin

        async with existing_log(database) as log:
            keys = await existing_house_keys(log, key_file(database, house_key))
            return await WebhookAdmin(log, who=operator or whoami()).add(
                keys,
                url,
                key=key,
                types=types or [],
                signing=sign.value,
                after=after,
                allow_private=allow_private,
                why=why,
            )

    with usage_errors():
        number, verifier = asyncio.run(adding())
    kind = "The secret" if sign is Signing.HMAC else "The public key"
    echo_err(f"Webhook {number}. {kind}, which is not shown again:")
    echo(verifier)


@app.command("list")
def list_(database: Database = DATABASE, as_json: AsJson = False) -> None:
    """List the webhooks: what they get, how far they are, and what fails.

    ```
    dealer webhook list
    dealer webhook list --json | jq 'select(.disabled_at != null)'
    ```
    """
    webhooks = asyncio.run(_read(database))
    for webhook, key in webhooks:
        say_json(_shown(webhook, key)) if as_json else echo(safe_text(_line(webhook, key)))
    if not webhooks and not as_json:
        echo("This database has no webhooks; `dealer webhook add` makes one.")


@app.command()
def remove(
    number: Number, why: Why = "", database: Database = DATABASE, operator: Operator = None
) -> None:
    """Remove a webhook; what it did not get yet is not sent.

    ```
    dealer webhook remove 2 --why "the shop reads the feed now"
    ```
    """
    _change(database, operator, number, lambda admin: admin.remove(number, why=why))
    echo(f"Webhook {number} is removed.")


@app.command()
def enable(
    number: Number, why: Why = "", database: Database = DATABASE, operator: Operator = None
) -> None:
    """Deliver again to a webhook that was switched off, from where it stopped.

    ```
    dealer webhook enable 2 --why "the shop's server is back"
    ```
    """
    _change(database, operator, number, lambda admin: admin.enable(number, why=why))
    echo(f"Webhook {number} is enabled.")


@app.command()
def replay(
    number: Number,
    position: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="POSITION",
            help="start, now, or a position of the feed.",
            show_default=False,
        ),
    ],
    why: Why = "",
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """Send events again, or skip some: deliver what follows a position.

    ```
    dealer webhook replay 2 --from start
    ```
    """
    _change(database, operator, number, lambda admin: admin.replay(number, position, why=why))
    echo(f"Webhook {number} continues from there.")


def _change(
    database: str,
    operator: str | None,
    number: int,
    change: Callable[[WebhookAdmin], Awaitable[bool]],
) -> None:
    async def run() -> bool:
        from dealer.service.operations.webhooks import WebhookAdmin

        async with existing_log(database) as log:
            return await change(WebhookAdmin(log, who=operator or whoami()))

    if not asyncio.run(run()):
        raise ConfigurationError(f"There is no webhook {number}; `dealer webhook list` lists them.")


async def _read(database: str) -> list[tuple[StoredWebhook, str]]:
    from dealer.eventlog.backends import open_readonly
    from dealer.eventlog.owners import stored_keys
    from dealer.eventlog.webhooks import stored_webhooks

    async with await open_readonly(database) as log:
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
    types = ",".join(webhook.types.split()) or "all types"
    return f"{webhook.id}  {webhook.url}  {key}  {types}  after {webhook.position}  {state}"
