"""The command line `dealer`: run a server, check games, maintain the log.

Each command is a module of `dealer.cli.commands`, which imports what it needs when it runs: a page
of help or the verifier loads no database driver and no network library.
"""

from dealer.cli.main import main

__all__ = ["main"]
