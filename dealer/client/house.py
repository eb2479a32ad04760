"""The way in: a house one is connected to, where tables are opened, joined and watched."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Mapping
from types import TracebackType
from typing import Any

from dealer.client.connection import Connection
from dealer.client.following import Following
from dealer.client.moves import Deck, deck_spec
from dealer.client.questions import Members, Patience
from dealer.client.store import Store, TableStore
from dealer.client.table import RemoteTable
from dealer.errors import BadToken, HouseCheated, SetupError
from dealer.proof.checkpoint import Cosigner

SEED_BYTES = 32


def connect(
    url: str,
    *,
    name: str | None = None,
    store: str | os.PathLike[str] | None = None,
    cosigner: Cosigner | bool | None = True,
    patience: Patience | None = None,
) -> House:
    """The house at `url` (`ws://…/ws` or `wss://…/ws`), to be used with `async with` or `await`.

    `name` is who sits down when `join` is told no other. `store` is a folder in which tokens, the
    bytes given to shuffles and signed heads outlive this process; without it they do not.
    A player cosigns the checkpoints that were checked: under an Ed25519 key of its own for each
    table, which is drawn when the player joins and is kept in the store, or under the key that
    `cosigner` names; `cosigner=False` switches that off.
    """
    return House(url, name=name, store=Store(store), cosigner=cosigner, patience=patience)


class House:
    """A connection to a house; it is built again by itself when it breaks."""

    def __init__(
        self,
        url: str,
        *,
        name: str | None,
        store: Store,
        cosigner: Cosigner | bool | None,
        patience: Patience | None,
    ) -> None:
        self.connection = Connection(url, patience=patience)
        self._name = name
        self._store = store
        self._cosigner = cosigner
        self._tables: dict[str, RemoteTable] = {}
        self._followings: dict[str, Following] = {}

    def __await__(self) -> Generator[Any, None, House]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> House:
        await self.connection.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up. Seats are kept: one comes back with `join` and the same store."""
        await self.connection.close()

    async def open(
        self,
        *,
        deck: Deck | None = None,
        seats: int | None = None,
        rules: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> RemoteTable:
        """Open a table, as its host; `join` it to play, too."""
        given = None if rules is None else dict(rules)
        members = {"deck": deck_spec(deck), "seats": seats, "rules": given, "name": name}
        params = {name: value for name, value in members.items() if value is not None}

        def answered(result: Members) -> None:
            self._store.table(result["table"]).learn(
                host_token=result["host_token"], invite=result["invite"], key=result["key"]
            )

        result = await self._ask("table.open", params, answered)
        table_id = result["table"]
        await self._follow(table_id, key=bytes.fromhex(result["key"])).start()
        return await self._caught_up(table_id, result["version"])

    async def join(
        self,
        table: str | RemoteTable,
        *,
        name: str | None = None,
        seat: int | None = None,
        invite: str | None = None,
        key: bytes | None = None,
    ) -> RemoteTable:
        """Sit down at a table, or come back to the seat that the store remembers.

        `key`, 32 bytes, is the table's, if it is known from elsewhere; otherwise the first one
        that comes is trusted, and no other after it. Raises HouseCheated at a table that was left
        because of that.
        """
        table_id = table if isinstance(table, str) else table.id
        kept = self._store.table(table_id)
        if kept.facts.get("token") and table_id not in self._followings:
            try:
                return await self._come_back(table_id, key=key)
            except BadToken:
                kept.learn(token=None, seat=None, since=None)
        following = self._follow(table_id, key=key)
        cosigner = following.duties.cosigner = self._cosigner_at(kept, draw=True)
        members = {
            "table": table_id,
            "name": name or self._name or "Guest",
            "seat": seat,
            "invite": invite or kept.facts.get("invite"),
            "key": None if cosigner is None else cosigner.public_key.hex(),
        }
        params = {name: value for name, value in members.items() if value is not None}
        result = await self._ask("table.join", params, following.joined)
        return await self._caught_up(table_id, result["version"])

    async def watch(self, table: str, *, key: bytes | None = None) -> RemoteTable:
        """Look on without a seat."""
        following = self._follow(table, key=key)
        result = await self._ask("table.watch", {"table": table}, following.joined)
        return await self._caught_up(table, result["version"])

    async def tables(self) -> list[Members]:
        """The tables that the house lists for everybody."""
        result = await self.connection.ask("table.list", {}, table=None)
        return list(result["tables"])

    async def _come_back(self, table_id: str, *, key: bytes | None) -> RemoteTable:
        following = self._follow(table_id, key=key)
        try:
            version = (await following.start())["version"]
        except BadToken:
            self._followings.pop(table_id)
            self._tables.pop(table_id)
            raise
        return await self._caught_up(table_id, version)

    def _follow(self, table_id: str, *, key: bytes | None) -> Following:
        """What this house's client holds of a table, made when it is first spoken of."""
        following = self._followings.get(table_id)
        if following is not None and following.error is None:
            return following
        kept = self._store.table(table_id)
        if kept.evidence:
            sentence = kept.evidence[-1]["sentence"]
            raise HouseCheated(f"This table was left because the house cheated: {sentence}")
        pinned = bytes.fromhex(kept.facts.get("key", ""))
        if key is not None and pinned and key != pinned:
            raise HouseCheated("This table's key is not the one it had: it is another table.")
        cosigner = self._cosigner_at(kept, draw=False)
        following = Following(
            table_id, self.connection, kept, key=key or pinned or None, cosigner=cosigner
        )
        self._followings[table_id] = following
        self._tables[table_id] = RemoteTable(following)
        return following

    def _cosigner_at(self, kept: TableStore, *, draw: bool) -> Cosigner | None:
        """The key that cosigns at a table; one of its own is drawn where the store has none."""
        if isinstance(self._cosigner, Cosigner) or not self._cosigner:
            return self._cosigner or None
        if draw and not kept.facts.get("player_seed"):
            kept.learn(player_seed=secrets.token_bytes(SEED_BYTES).hex())
        try:
            seed = bytes.fromhex(kept.facts.get("player_seed", ""))
            return Cosigner(seed) if seed else None
        except (TypeError, ValueError) as error:
            raise SetupError(
                "The key that this client cosigns with is damaged in its store: restore the "
                "store, or connect with cosigner=False."
            ) from error

    async def _ask(self, method: str, params: Members, answered: Any) -> Members:
        return await self.connection.ask(
            method, params, table=None, changes=method != "table.watch", answered=answered
        )

    async def _caught_up(self, table_id: str, version: int) -> RemoteTable:
        return await self._tables[table_id].until(lambda table: table.version >= version)
