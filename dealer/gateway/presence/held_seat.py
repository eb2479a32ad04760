"""Held seat: the seat that one connection acts for at a table.

The state of a table may be ahead of the log, and an append that is lost neither moves nor removes a
player. So two seats are kept, and `refresh` follows the second one in the state:

| in the state, the player of `on_disk` | `holder` | `on_disk`, once all of the state is on disk |
|---|---|---|
| has that seat | that seat | stays |
| has moved to another one | the new seat | the new seat |
| has given it up, also where another took it | None | None; a seat does not come back |
| has it again, after a reload: the state was void | that seat | stays |
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dealer.errors import BadRequest
from dealer.game.state import SeatHolder
from dealer.service import LiveTable


@dataclass(slots=True, eq=False, repr=False)
class HeldSeat:
    """`holder` is the seat in the state as of the last `refresh`, None without one.

    `on_disk` is the last seat that is known to be on disk. `tokens` are those that were verified on
    this connection, the host's too; after a seat was given up all are verified again.
    """

    live_table: LiveTable
    holder: SeatHolder | None = None
    on_disk: SeatHolder | None = None
    tokens: set[str] = field(default_factory=set)

    def take(self, holder: SeatHolder) -> None:
        """Act for a seat from now on; BadRequest if this connection acts for another one."""
        current = self.refresh()
        if current is not None and current.seat != holder.seat:
            raise BadRequest(
                "This connection already has a seat at this table; use another for another seat."
            )
        self.holder = self.on_disk = holder

    def refresh(self) -> SeatHolder | None:
        """Set `holder` to the seat that the connection acts for now, and return it.

        The table above has the cases.
        """
        holder, table = self.on_disk, self.live_table.table
        if holder is not None and not table.still_seated(holder):
            moved = table.latest(holder)
            holder = moved if table.still_seated(moved) else None
            if holder is None:
                self.tokens.clear()
            if table.version == self.live_table.committed:
                self.on_disk = holder
        self.holder = holder
        return holder

    def is_committed(self) -> bool:
        """Whether it is on disk which seat this connection acts for."""
        if self.on_disk is None:
            return True
        table = self.live_table.table
        latest = table.latest(self.on_disk)
        return table.still_seated(latest) and latest.taken_at <= self.live_table.committed

    async def wait_committed(self) -> None:
        """Wait until it is on disk which seat this connection acts for, and refresh `holder`.

        It is then no seat of another player, who may take it where a move is lost.
        """
        if self.on_disk is not None and not self.is_committed():
            self.on_disk = await self.live_table.seat_on_disk(self.on_disk)
            if self.on_disk is None:
                self.tokens.clear()
        self.refresh()
