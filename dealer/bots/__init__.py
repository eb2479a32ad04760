"""Bots: simple players for trying a table.

A bot is a client like any other: it sees what its seat may see, and its seat's event says that it
is a bot.
"""

from dealer.bots.links import TableLink, read_link
from dealer.bots.play import Bots

__all__ = ["Bots", "TableLink", "read_link"]
