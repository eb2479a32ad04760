"""`dealer mcp`: tools for an agent, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dealer.cli.commands.bots import LOCAL_SERVER
from dealer.errors import BadRequest, ConfigurationError
from dealer.version import __version__


def mcp(
    server: Annotated[
        str, typer.Option("--server", metavar="URL", help="Address of the server to play at.")
    ] = LOCAL_SERVER,
    store: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Where the agent's seats are stored, with their tokens. Started again with the "
            "same folder, the agent continues in them.",
        ),
    ] = Path(".dealer-agent"),
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The player's name, unless the agent gives one.")
    ] = "Agent",
) -> None:
    """Let an agent play, by the Model Context Protocol (MCP) on standard input and output.

    Its tools are list_tables, sit, look, wait, draw, play, note, leave and evidence. The agent sees
    what its seat may see, and the log and the pages say that it is a bot. It needs the extra `mcp`:
    `pip install '.[mcp]'` in the source folder. As an entry in the configuration of a program with
    agents:

    ```
    {"mcpServers": {"dealer": {"command": "dealer", "args": ["mcp", "--store", "/home/me/agent"]}}}
    ```
    """
    from dealer.bots.links import socket_address

    try:
        from dealer.mcp.seats import Seats
        from dealer.mcp.server import run
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"`dealer mcp` needs the package {error.name}: install dealer with its extra, as in "
            "`pip install '.[mcp]'` in the source folder."
        ) from error
    try:
        address = socket_address(server)
    except BadRequest as error:
        raise typer.BadParameter(str(error)) from None
    run(Seats(address, store, name=name), version=__version__)
