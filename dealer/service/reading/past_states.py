"""Past states: a table as it was at an earlier version, rebuilt from the log.

Up to the last round that had begun, only what outlives a round is folded: few events, which an
index of the database has. The events from there on follow in slices, so that others play meanwhile.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dealer.errors import BadRequest, NotEntitled
from dealer.eventlog import EventRecord, ReadOnlyLog
from dealer.eventlog.health import DamagedTables
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import LASTING_TYPES
from dealer.game.insecure_deck import RULE as INSECURE_DECK
from dealer.game.rules import PRACTICE, SOURCE
from dealer.game.state import Round, SeatHolder, Table, evolve
from dealer.game.view import SPECTATOR, Viewer, snapshot
from dealer.service.tables.archive import require_here
from dealer.service.tables.decks import RULE as DECKS
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.round_secret import RoundSecret, event_of, tampered
from dealer.service.tables.round_secret_cache import RoundSecretCache

SLICE = 256
"""Events that are folded in one step of the loop, some 3 ms."""

NOT_TAKEN_OVER = ("name", DECKS)
"""The rules of a table that a practice table does not get.

It names its source to everyone who sees it, so if the lobby does not list that one, it does not
list this one either.
"""

AnySecret = RoundSecret | NoRoundSecrets
SecretOf = Callable[[EventRecord], Awaitable[AnySecret]]
"""The secret of the round that a RoundOpened began, if it is known."""

Pause = Callable[[], Awaitable[None]]


async def no_pause() -> None:
    """Nothing else runs in this process."""


async def table_at(
    log: ReadOnlyLog,
    table: bytes,
    version: int,
    *,
    opened: Sequence[int],
    secret_of: SecretOf,
    pause: Pause = no_pause,
) -> Table:
    """The state at `version`, which the log must have; `pause` is awaited between slices.

    `opened` are the versions up to it that opened a round. Hidden faces are known if `secret_of`
    has the secret of the last of these. Raises TableArchived or DatabaseDamaged if rows are
    missing.
    """
    start = opened[-1] if opened else 1
    state = Table()
    async for rows in log.stream_types(table, LASTING_TYPES, upto=start - 1, chunk=SLICE):
        for row in rows:
            state.version = row.version - 1
            evolve(state, event_of(row, NoRoundSecrets()), row.at)
        await pause()
    state.round_versions = list(opened[:-1])
    state.version = start - 1
    secret: AnySecret = NoRoundSecrets()
    async for rows in log.stream(table, after=start - 1, upto=version, chunk=SLICE):
        for row in rows:
            if row.type == "RoundOpened":
                secret = await secret_of(row)
            evolve(state, event_of(row, secret), row.at)
        await pause()
    if state.version != version or not state.origin:
        await require_here(log, table)
        raise tampered(table.hex())
    return state


def require_version(version: int, *, head: int) -> None:
    """Raise BadRequest unless a table with this head has the version."""
    if not 1 <= version <= head:
        raise BadRequest(f"This table has no version {version}: its versions are 1 to {head}.")


class PastStates:
    """The past states of the tables in `log`, as their viewers may see them."""

    def __init__(self, log: ReadOnlyLog, secrets: RoundSecretCache, damaged: DamagedTables) -> None:
        self._damaged = damaged
        self._log = log
        self._secrets = secrets

    def require(self, live_table: LiveTable, version: int) -> None:
        """Raise BadRequest unless the table has this version."""
        require_version(version, head=live_table.committed)

    def length(self, live_table: LiveTable, version: int) -> int:
        """How many events there are from the beginning of the last round up to `version`."""
        opened = _opened(live_table, version)
        return version - (opened[-1] if opened else 0)

    async def view(
        self, live_table: LiveTable, version: int, viewer: Viewer | int, *, pause: Pause
    ) -> dict[str, Any]:
        """The table at `version` as `viewer` could see it then, with the salts of its cards.

        A viewer who no longer holds the seat gets the spectator's view, as of the current state. A
        seat's number stands for the player who held it at `version`.

        Raises BadRequest if there is no such version, or if that seat was free; NotEntitled if the
        round of the cards of a seat is still open; and the errors of `table_at`.
        """
        self.require(live_table, version)
        if isinstance(viewer, SeatHolder) and not live_table.table.still_seated(viewer):
            viewer = SPECTATOR
        state = await self._state(live_table, version, pause)
        if isinstance(viewer, int):
            if state.round is not None:
                await _require_closed(live_table, state.round.number)
            seat, viewer = viewer, state.holder(viewer)
            if viewer is None:
                raise BadRequest(f"Seat {seat} was free at version {version}.")
        # A player who had not taken the seat yet is a spectator there.
        if isinstance(viewer, SeatHolder) and not state.still_seated(viewer):
            viewer = SPECTATOR
        view = snapshot(state, viewer)
        if state.round is not None:
            secret = await self._secrets.secret(live_table, state.round.number)
            for card in view["round"]["cards"]:
                card.append(secret.slot_salt(card[0]).hex())
        return view

    async def moment(self, live_table: LiveTable, number: int, version: int | None) -> int:
        """The version of a closed round to play on from, if it has one: without it the first seal.

        Raises BadRequest if the table has no such round or version, or a test deck; NotEntitled
        while the round is open.
        """
        opened = live_table.table.round_versions
        if INSECURE_DECK in live_table.table.rules.given:
            raise BadRequest(
                "That table has an insecure test deck, whose rounds prove nothing: play on from a "
                "round of another table."
            )
        if not 1 <= number <= len(opened):
            raise BadRequest(f"That table has no round {number}: it has {len(opened)} so far.")
        await _require_closed(live_table, number)
        if version is not None:
            self.require(live_table, version)
            return version
        start = opened[number - 1]
        async for rows in self._log.stream(live_table.id, after=start, chunk=SLICE):
            for row in rows:
                if row.type == "DeckSealed":
                    return row.version
                if row.type == "RoundClosed":
                    return start  # without a shuffle: the deck as it was opened
        return start

    async def practice(
        self, live_table: LiveTable, number: int, version: int, *, pause: Pause
    ) -> tuple[dict[str, Any], Round]:
        """The rules of a practice table, and the round to lay out, at a version of `moment`.

        Raises BadRequest if the version is not of the round, or while cards wait to be passed; and
        the errors of `table_at`.
        """
        newest = await self._log.newest_checkpoint(live_table.id, upto=live_table.committed)
        round_ = (await self._state(live_table, version, pause)).round
        if newest is None or round_ is None or round_.number != number:
            raise BadRequest(
                f"Version {version} is not of round {number}: choose one from its RoundOpened to "
                "the last one before its RoundClosed."
            )
        if round_.moves.passed:
            raise BadRequest(
                f"At version {version} cards wait to be passed: choose a version before the first "
                "of them, or after all were delivered."
            )
        _, root = self._secrets.signed(live_table, newest[1])
        given = dict(live_table.table.rules.given)
        source = (live_table.table_id, number, version, root.hex())
        given[PRACTICE] = dict(zip(SOURCE, source, strict=True))
        return {name: given[name] for name in given if name not in NOT_TAKEN_OVER}, round_

    async def _state(self, live_table: LiveTable, version: int, pause: Pause) -> Table:
        async def secret_of(row: EventRecord) -> RoundSecret:
            return await self._secrets.secret(live_table, row.members()["round"])

        opened = _opened(live_table, version)
        with self._damaged.noticed(live_table.table_id):
            return await table_at(
                self._log, live_table.id, version, opened=opened, secret_of=secret_of, pause=pause
            )


async def _require_closed(live_table: LiveTable, number: int) -> None:
    """Raise NotEntitled unless it is on disk that this round was closed, which shows its cards."""
    while True:
        version, current = live_table.table.version, live_table.table.round
        if current is not None and current.number == number:
            raise NotEntitled(
                f"Round {number} is still open: what a player held is shown after it is closed."
            )
        if await live_table.wait_committed(version):
            return


def _opened(live_table: LiveTable, version: int) -> list[int]:
    versions = live_table.table.round_versions
    return versions[: bisect_right(versions, version)]
