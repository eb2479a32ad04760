"""What one types at the house's own terminal: open it, play in it, look into its books, check them.

Each command has a module of its own name, which brings in what it needs when it runs: so a page of
help, or a verifier, waits for no database and no socket.
"""

from dealer.cli.commands import main

__all__ = ["main"]
