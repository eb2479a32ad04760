"""The named points of the code at which `points.py` kills the server."""

from __future__ import annotations

from typing import NamedTuple


class Point(NamedTuple):
    """A position in a function, for `dies_at.py`; reached at least `often` times in a game.

    `after` names another point: only a server that follows one that died there reaches this one,
    and not always, since the interrupted append may not have been a command. `commit` is the
    `--commit` of the server that dies there, if only one of them leads to it.
    """

    function: str
    place: str
    often: int = 1
    after: str = ""
    commit: str = ""


STARTING = {
    "before the database is opened": Point(
        "dealer.eventlog.sqlite.store:SqliteStore.open", "begin"
    ),
    "in WAL mode, and empty": Point("dealer.eventlog.schema:upgrade", "begin"),
    "in the first migration": Point("dealer.eventlog.schema:upgrade", "before CREATE TABLE event"),
    "between two migrations": Point(
        "dealer.eventlog.schema:upgrade", "after INSERT INTO alembic_version"
    ),
    "before the migrations' COMMIT": Point(
        "dealer.eventlog.sqlite.store:SqliteStore._transaction", "before COMMIT"
    ),
    "after the migrations' COMMIT": Point(
        "dealer.eventlog.sqlite.store:SqliteStore._transaction", "after COMMIT"
    ),
    "the write-ahead log is grown": Point("dealer.eventlog.sqlite.store:SqliteStore._grow", "end"),
    "the key is drafted": Point("dealer.eventlog.keys:make", "call os:link"),
    "the key file is linked, its draft remains": Point(
        "dealer.eventlog.keys:make", "call os:unlink"
    ),
    "the key file exists, the database has no check of it": Point(
        "dealer.eventlog.log:Log.put_metadata", "begin"
    ),
    "the mark exists and is empty": Point(
        "dealer.eventlog.high_water_mark:HighWaterMark.begin", "begin"
    ),
}
"""Reached while a server opens for the first time."""

APPEND = "dealer.eventlog.sqlite.store:SqliteStore.append"
RUN = "dealer.eventlog.sqlite.store:SqliteStore.run"
SLICE = "dealer.projector.runner:Projector.slice"

PLAYING = {
    "a table has been loaded": Point("dealer.service.tables.loading:Loader.load", "end"),
    "a command is decided": Point(
        "dealer.service.commands.executor:CommandExecutor.apply", "begin", 5
    ),
    "before append": Point("dealer.eventlog.writer:Writer.submit", "begin", 5),
    "after the append is queued": Point("dealer.eventlog.writer:Writer.submit", "end", 5),
    "before BEGIN": Point(APPEND, "begin", 5),
    "after BEGIN": Point(APPEND, "after BEGIN", 5),
    "before the head moves": Point(APPEND, "before UPDATE stream", 5),
    "the head moved, no event written": Point(APPEND, "before INSERT INTO event", 5),
    "the events are written": Point(APPEND, "after INSERT INTO event", 5),
    "before a checkpoint's signing": Point("dealer.proof.checkpoint:Signer.sign", "begin", 3),
    "after a checkpoint's signing": Point("dealer.proof.checkpoint:Signer.sign", "end", 3),
    "between the events and their checkpoint": Point(
        "dealer.eventlog.sqlite.store:_note", "begin", 3
    ),
    "after a checkpoint's writing": Point("dealer.eventlog.sqlite.store:_note", "end", 3),
    "before a requested checkpoint": Point("dealer.eventlog.log:Log.put_checkpoint", "begin"),
    "a player's cosignature is stored": Point(
        "dealer.service.reading.checkpoints:Checkpoints.cosign", "end", 3
    ),
    "before COMMIT": Point(APPEND, "before COMMIT", 5),
    "after COMMIT": Point(APPEND, "after COMMIT", 5),
    "the loop's thread commits": Point(
        "dealer.eventlog.writer:Writer._write_on_loop", "begin", 5, commit="loop"
    ),
    "the loop's thread committed": Point(
        "dealer.eventlog.writer:Writer._write_on_loop", "end", 5, commit="loop"
    ),
    "the writer thread commits": Point(
        "dealer.eventlog.writer:Writer._write_on_thread", "begin", 5, commit="thread"
    ),
    "the writer thread committed": Point(
        "dealer.eventlog.writer:Writer._write_on_thread", "end", 5, commit="thread"
    ),
    "before results are delivered": Point("dealer.eventlog.writer:Writer._deliver", "begin", 5),
    "before the commit is in the mark": Point(
        "dealer.eventlog.high_water_mark:HighWaterMark.wrote", "begin", 5
    ),
    "the commit is in the mark": Point(
        "dealer.eventlog.high_water_mark:HighWaterMark.wrote", "end", 5
    ),
    "after COMMIT, on the loop": Point(
        "dealer.service.commands.processor:CommandProcessor.on_result", "begin", 5
    ),
    "a command is received again": Point(
        "dealer.service.commands.processor:CommandProcessor.answer_repeated",
        "begin",
        after="after COMMIT, on the loop",
    ),
    "before push": Point("dealer.gateway.push.broadcaster:Broadcaster.publish", "begin", 5),
    "after push, before reply": Point(
        "dealer.gateway.push.broadcaster:Broadcaster.publish", "end", 5
    ),
    "after reply": Point("dealer.gateway.session.dispatcher:Dispatcher._on_outcome", "end", 5),
    "after reply, before the next one's push": Point(
        "dealer.service.commands.processor:CommandProcessor.on_result", "end", 5
    ),
    "the events a client missed are read": Point(
        "dealer.gateway.push.backlog:Backlog._send_next", "begin", after="before push"
    ),
    "a client is up to date": Point("dealer.gateway.push.backlog:Backlog._run", "end", 2),
    "the round's secret is drawn": Point(
        "dealer.service.commands.executor:CommandExecutor._draw_secret", "end"
    ),
    "before a shuffle is carried out": Point(
        "dealer.service.commands.executor:CommandExecutor._finish", "begin", 2
    ),
    "after a shuffle is carried out": Point(
        "dealer.service.commands.executor:CommandExecutor._finish", "end", 2
    ),
    "before projection": Point(SLICE, "begin", 2),
    "in the middle of projection": Point(
        "dealer.projector.changes:ReadModelWriter.write", "after INSERT", 3
    ),
    "between projection and its mark": Point(SLICE, "before UPDATE stream SET projected"),
    "after projection's mark": Point(SLICE, "after UPDATE stream SET projected"),
    "before projection's COMMIT": Point(RUN, "before COMMIT", 2),
    "after projection's COMMIT": Point(RUN, "after COMMIT", 2),
}
"""Reached while four clients play."""

DRAINING = {
    "the drain begins": Point("dealer.gateway.server:Gateway.drain", "begin"),
    "the clients are notified": Point("dealer.gateway.clients:announce_drain", "end"),
    "the connections are closed": Point(
        "dealer.gateway.clients:ConnectionRegistry.close_all", "end"
    ),
    "the tables are released": Point("dealer.service.service:Service.close", "end"),
    "before the log is closed": Point("dealer.eventlog.log:Log.close", "begin"),
    "after the log is closed": Point("dealer.eventlog.log:Log.close", "end"),
}
"""Reached after SIGTERM, in the middle of a game."""

REBUILD = "dealer.projector.rebuild:Rebuild"

REBUILDING = {
    "the new read models are prepared": Point(f"{REBUILD}._prepare", "end"),
    "some events are replayed": Point(f"{REBUILD}._write", "end"),
    "before the swap": Point(f"{REBUILD}._swap", "begin"),
    "in the swap, some tables renamed": Point(f"{REBUILD}._swap", "before ALTER TABLE", 4),
    "in the swap, before the mark": Point(f"{REBUILD}._swap", "before UPDATE stream"),
    "after the swap, before COMMIT": Point(f"{REBUILD}._swap", "end"),
}
"""Reached by `dealer rebuild`, in its own process next to the running server."""

ALL = STARTING | PLAYING | DRAINING | REBUILDING
