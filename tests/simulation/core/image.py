"""Prepared tables: databases in which a table is open already, made once in a process.

A run that begins at such an image does not spend its time on the opening of the same table. An
image depends on its settings only, so a run depends on its seed only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dealer.game import commands as c
from dealer.game.events import SeatTaken
from dealer.game.state import SeatHolder
from dealer.service import IdempotencyKey, Service
from dealer.service.identity.admin import AdminService
from tests.simulation.core.choices import FACES
from tests.simulation.core.plan import ACTORS
from tests.simulation.plan import Plan

if TYPE_CHECKING:
    from tests.simulation.core.witness import CoreWitness

BEGIN = 900.0
"""Virtual time of the preparation; runs begin at 1000."""


class Image(NamedTuple):
    """A database with its files, what the witness knows of it, and who sits where."""

    data: bytes
    files: dict[str, bytes]
    log: dict[str, list[str]]
    types: dict[str, list[str]]
    commands: dict[tuple[str, str], int]
    takers: dict[str, str]
    tables: list[str]
    holders: dict[str, SeatHolder]

    def write_files(self, folder: Path) -> None:
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o600)

    def report_to(self, witness: CoreWitness) -> None:
        """Let the witness know what is in the log."""
        witness.log = {table: list(leaves) for table, leaves in self.log.items()}
        witness.types = {table: list(types) for table, types in self.types.items()}
        witness.commands = dict(self.commands)
        witness.takers = dict(self.takers)
        for table, leaves in self.log.items():
            for version, leaf in enumerate(leaves, 1):
                witness.ever[table, version] = {leaf}


def image_for(settings: dict[str, Any]) -> Image:
    """The image that a plan with these settings begins with."""
    stage, feed = settings["stage"], settings["feed"]
    if stage == "none":
        return _prepared(stage, feed, 0, 0, "house")
    if stage == "seated":
        return _prepared(stage, feed, settings["seats"], 0, settings["entropy"])
    entropy = settings["entropy"] if stage == "round" else "house"
    return _prepared(stage, feed, settings["seats"], settings["cards"], entropy)


@cache
def _prepared(stage: str, feed: bool, seats: int, cards: int, entropy: str) -> Image:
    from tests.simulation.core.world import CoreWorld, run_folder

    settings = {
        "nodes": 1,
        "commit": "loop",
        "idle_tables": 100,
        "hint_loss": 1.0,
        "length": 0.0,
        "seats": seats,
    }
    with run_folder() as folder:
        world = CoreWorld(Plan(0, settings, ()), folder, None)
        holders: dict[str, SeatHolder] = {}

        async def prepare(service: Service) -> None:
            if feed:
                await AdminService(service.log, who="op").add_service_key("follower", ["read"])
            if stage != "none":
                holders.update(await _open(service, seats, entropy))
                await _play(service, stage, FACES[:cards], entropy)

        world.prepare(prepare)
        assert not world.outcome.faults, world.outcome.faults
        files = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}
        witness = world.witness
        data = world.database.copy()
    known = (witness.log, witness.types, witness.commands, witness.takers)
    return Image(data, files, *known, list(witness.log), holders)


async def _open(service: Service, seats: int, entropy: str) -> dict[str, SeatHolder]:
    rules = {"seats": 4, "preset": "shared", "entropy": entropy}
    live_table, _ = await service.open_table(rules, key=None)
    holders = {}
    for name in ACTORS[:seats]:
        key = IdempotencyKey("new", f"{name} joins the prepared table", b"join")
        done = await service.execute(live_table, c.TakeSeat(name), key=key)
        seat = next(one.seat for one in done.events if isinstance(one, SeatTaken))
        holders[name] = SeatHolder(seat, done.version)
    return holders


async def _play(service: Service, stage: str, faces: tuple[str, ...], entropy: str) -> None:
    if stage == "seated":
        return
    (live_table,) = service.tables
    host = c.Actor(host=True)
    await service.execute(live_table, c.OpenRound(host, faces, entropy, 300, 300))
    if stage == "dealt":
        await service.execute(live_table, c.StartShuffle(host))
        await service.execute(live_table, c.Deal(host, 1))
