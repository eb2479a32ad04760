"""Names of earlier releases, which warn and will be removed with the next one."""

from __future__ import annotations

import warnings
from typing import Any

from dealer.client.moves import Cards, Moves
from dealer.game.commands import Where


def warn_renamed(old: str, new: str) -> None:
    """A DeprecationWarning at the line that called the caller of this function."""
    warnings.warn(f"{old} is now {new}.", DeprecationWarning, stacklevel=3)


class OldNames(Moves):
    """The commands, also under their old names."""

    async def change(self, method: str, **params: Any) -> dict[str, Any]:
        """The old name of `call`."""
        warn_renamed("RemoteTable.change", "RemoteTable.call")
        return await self.call(method, **params)

    async def return_(self, cards: Cards | None = None, **options: Any) -> None:
        """The old name of `return_cards`."""
        warn_renamed("RemoteTable.return_", "RemoteTable.return_cards")
        await self.return_cards(cards, **options)

    async def hand_return(self, cards: Cards, *, where: Where | None = None) -> None:
        """The old name of `return_cards` for cards of the hand."""
        warn_renamed("RemoteTable.hand_return", "RemoteTable.return_cards")
        await self.return_cards(cards, where=where)

    async def pile_move(self, source: str, *, to: str, **options: Any) -> None:
        """The old name of `move`."""
        warn_renamed("RemoteTable.pile_move", "RemoteTable.move")
        await self.move(source, to=to, **options)
