"""The command line `dealer`: run a server, check games, maintain the log.

Each module of `dealer.cli.commands` is a group of commands, which import what they need when they
run: a page of help or the verifier loads no database driver and no network library.
"""

from dealer.cli.main import main

__all__ = ["main"]
