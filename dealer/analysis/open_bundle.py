"""`dealer.open_bundle`: the past states of a table from its bundle, without a database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dealer.analysis.past_table import PastTable, Viewer, past_table
from dealer.game.state import Table
from dealer.history.replay import Game, replay_bundle
from dealer.proof import bundle
from dealer.proof.verify import verify
from dealer.service.reading.past_states import require_version


@dataclass(frozen=True, slots=True)
class OpenBundle:
    """A verified bundle; `game.moments()` are its events, each with the table before it."""

    game: Game

    def state(self, at: int | None = None, *, viewer: Viewer = None) -> PastTable:
        """The table at a version, by default the newest, as a viewer saw it then.

        `viewer` is a seat, `public` or None for what everyone saw, or `house` for every card; the
        hidden cards of a round that is not closed are unknown to each. Raises BadRequest if there
        is no such version, or if that seat was free.
        """
        game, table = self.game, Table()
        version = len(game.leaves) if at is None else at
        require_version(version, head=len(game.leaves))
        for step in replay_bundle(game.leaves[:version], game.swaps):
            table = step.table  # one table, which has each event once the next step is asked for
        known = table.round is not None and table.round.number <= game.closed
        return past_table(game.table, table, viewer, secret_known=known)


def open_bundle(
    file: str | os.PathLike[str], *, key: bytes | str | None = None, saved: Sequence[str] = ()
) -> OpenBundle:
    """The bundle in a file, which is verified first, as `dealer verify` does.

    `key` is the table's key if you know it, 32 bytes or hex, and `saved` are checkpoints that you
    kept, as for `dealer.proof.verify.verify`. Raises the ProofFault of the first fault,
    HistoryUnavailable for a table with insecure test decks, and OSError.

        print(dealer.open_bundle("game.jsonl").state(at=57, viewer=2).hand(2))
    """
    data, notes = bundle.restore(Path(file).read_bytes())
    lines = bundle.read(data)
    return OpenBundle(Game.read(lines, verify(lines, key=key, saved=saved, notes=notes)))
