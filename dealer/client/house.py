"""The entry point: connects to a server, and opens, joins and watches its tables."""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import uuid
from collections.abc import Generator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from dealer.client.connection import Connection, require_table_id
from dealer.client.requests import Answered, Members, RetryPolicy
from dealer.client.storage import NO_SEAT, Store, TableStore, with_seat
from dealer.client.table import Deck, RemoteTable, deck_spec
from dealer.client.table_session import OnEvent, TableSession
from dealer.errors import BadRequest, BadToken, ConfigurationError, HouseCheated, Refused
from dealer.proof.checkpoint import Cosigner
from dealer.proof.verify.replay import INSECURE

log: logging.Logger = logging.getLogger(__name__)

SEED_BYTES = 32

_BROADCAST = re.compile(r"([0-9a-f]{32})/broadcast#([0-9.a-f]+)$")


def connect(
    url: str,
    *,
    name: str | None = None,
    store: str | os.PathLike[str] | None = None,
    cosigner: Cosigner | bool | None = True,
    patience: RetryPolicy | None = None,
    table: str | None = None,
    key: str | None = None,
    on_event: OnEvent | None = None,
) -> House:
    """A connection to the server at `url` (`ws://…/ws`, `wss://…/ws`); use `async with` or `await`.

    `name` is the player's name if `join` is given none. `store` is a folder for tokens, the random
    bytes committed to shuffles and verified signed heads; without it they are lost with the
    process. A player cosigns verified checkpoints: with an Ed25519 key per table, which is created
    when the player joins and kept in the store, or with `cosigner`; `cosigner=False` turns it off.
    `patience` has the timeouts and the backoff. `table` is the id of the table to join or watch, if
    it is known: a load balancer then connects to its node at once. `key` is a service key, for a
    program that opens tables for others (`dealer key add`). `on_event(table, event)` is called
    for each verified event of each table, also for those that the client missed while it was away.
    """
    connection = Connection(url, table=table, patience=patience, key=key)
    return House(connection, Store(store), name=name, cosigner=cosigner, on_event=on_event)


class House:
    """A connection to a server, which reconnects automatically. `connect` makes it."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        *,
        name: str | None,
        cosigner: Cosigner | bool | None,
        on_event: OnEvent | None,
    ) -> None:
        self._on_event = on_event
        self._connection = connection
        self._name = name
        self._store = store
        self._cosigner = cosigner
        self._tables: dict[str, RemoteTable] = {}
        self._sessions: dict[str, TableSession] = {}

    def __await__(self) -> Generator[Any, None, House]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> House:
        await self._connection.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Seats are kept: `join` with the same store resumes them."""
        await self._connection.close()

    async def open(
        self,
        *,
        deck: Deck | None = None,
        seats: int | None = None,
        rules: Mapping[str, Any] | None = None,
        name: str | None = None,
        ref: str | None = None,
        host: bool = True,
        from_: Mapping[str, Any] | None = None,
    ) -> RemoteTable:
        """Open a table as its host; `join` it to play as well.

        With `from_`, such as `{"table": id, "round": 1, "version": 57}`, it is a practice table:
        the cards of that closed round as they lay then or, without `version`, as they were first
        shuffled, under the rules of that table. It is one that anyone may watch, or one that this
        client has a token of, unless `from_` has a `token`. Raises Refused, a BadRequest if the
        version is not of the round, NotEntitled while the round is open, and UnknownTable also for
        a table that this client may not see.

        `ref` is a service's own id of the table: again it is the same table. With `host` False a
        service gets no host token, and acts there by the rights of its key alone.
        """
        given = None if rules is None else dict(rules)
        members = {
            "deck": deck_spec(deck),
            "seats": seats,
            "rules": given,
            "name": name,
            "ref": ref,
            "host": None if host else False,
            "from": None if from_ is None else self._with_token(from_),
        }
        params = {name: value for name, value in members.items() if value is not None}

        def answered(result: Members) -> None:
            self._store.table(result["table"]).update(
                host_token=result.get("host_token"), invite=result["invite"], key=result["key"]
            )

        result = await self._ask("table.open", params, answered)
        table_id = result["table"]
        self._connection.route_to(table_id)
        await self._follow(table_id, key=bytes.fromhex(result["key"])).start()
        return await _caught_up(self._tables[table_id], result["version"])

    def _with_token(self, source: Mapping[str, Any]) -> Members:
        """The source of a practice table, with the stored token of one's seat or table there."""
        record = self._store.table(require_table_id(str(source.get("table")))).record
        token = record.get("token") or record.get("host_token")
        return {**({} if token is None else {"token": token}), **source}

    async def join(
        self,
        table: str | RemoteTable,
        *,
        name: str | None = None,
        seat: int | None = None,
        invite: str | None = None,
        key: bytes | None = None,
        ticket: str | None = None,
        jwt: str | None = None,
        bot: bool = False,
    ) -> RemoteTable:
        """Take a seat at a table, or resume the seat that the store has a token for.

        A `ticket` of the server of the player's account, or a `jwt` of an issuer that the server
        trusts, comes before that token: it gives the user's own seat, on every device the same.

        `key` is the table's key, 32 bytes, if it is known from elsewhere; otherwise the first key
        received is trusted and pinned. `bot` says that this player is a program, which the log and
        the pages then show. Raises HouseCheated for a table with stored evidence.
        """
        table_id = require_table_id(table if isinstance(table, str) else table.id)
        self._connection.route_to(table_id)
        stored = self._store.table(table_id)
        named = ticket is None and jwt is None
        if named and stored.record.get("token") and table_id not in self._sessions:
            with suppress(BadToken):
                return await self.resume(table_id, key=key)
        session = self._follow(table_id, key=key)
        cosigner = session.responder.cosigner = cosigner_at(stored, self._cosigner, create=True)
        members = {
            "table": table_id,
            "name": name or self._name or (default_name() if named else None),
            "ticket": ticket,
            "jwt": jwt,
            "seat": seat,
            "invite": invite or stored.record.get("invite"),
            "key": None if cosigner is None else cosigner.public_key.hex(),
            "bot": bot or None,
        }
        params = {name: value for name, value in members.items() if value is not None}
        try:
            command = {"cmd": join_command(stored, params)}
            table = await self._enter("table.join", params | command, session)
        except Refused:
            stored.update(joining=None)
            raise
        stored.update(joining=None)
        return table

    async def resume(
        self, table: str, *, token: str | None = None, key: bytes | None = None
    ) -> RemoteTable:
        """Continue in the seat that the store has a token for, or in the seat of `token`.

        Raises BadToken if there is none, or if that seat was left.
        """
        table_id = require_table_id(table)
        self._connection.route_to(table_id)
        stored = self._store.table(table_id)
        if token is not None:
            stored.update(**with_seat({"token": token}), shared=True)
        if not stored.record.get("token"):
            raise BadToken("This client has no seat at that table; join it first.")
        try:
            return await self._resume(table_id, key=key)
        except BadToken:
            stored.update(**NO_SEAT)
            raise

    async def watch(self, table: str, *, key: bytes | None = None) -> RemoteTable:
        """Follow a table without a seat: as its host if the store has its token, or to watch it."""
        self._connection.route_to(require_table_id(table))
        stored = self._store.table(table)
        host_only = stored.record.get("host_token") and not stored.record.get("token")
        if host_only and table not in self._sessions:
            with suppress(BadToken):
                return await self._resume(table, key=key)
            stored.update(host_token=None)
        session = self._follow(table, key=key)
        return await self._enter("table.watch", {"table": table}, session)

    async def broadcast(self, link: str) -> RemoteTable:
        """Watch what each player has seen, as late as the table's rule `broadcast` says.

        `link` is `…/tables/<id>/broadcast#<secret>`; hands are `table.stack("hand:1")`. Raises
        BadToken for a link that is not valid, and TooEarly before the broadcast has begun.
        """
        match = _BROADCAST.search(link)
        if match is None:
            raise BadRequest("A broadcast link ends with tables/<id>/broadcast#<secret>.")
        table, secret = match.groups()
        if table in self._sessions and self._sessions[table].error is None:
            raise BadRequest("This client is at the table already; connect another one.")
        self._connection.route_to(table)
        session = self._follow(table, key=None, link=secret)
        return await _caught_up(self._tables[table], (await session.start())["version"])

    async def tables(self, *, closed: bool = False) -> list[Members]:
        """The open tables that the server lists publicly, or the closed ones."""
        which = {"state": "closed"} if closed else {}
        result = await self._connection.ask("table.list", which, table=None)
        return list(result["tables"])

    async def _resume(self, table_id: str, *, key: bytes | None) -> RemoteTable:
        session = self._follow(table_id, key=key)
        try:
            version = (await session.start())["version"]
        except BadToken:
            self._sessions.pop(table_id)
            self._tables.pop(table_id)
            raise
        return await _caught_up(self._tables[table_id], version)

    def _follow(self, table_id: str, *, key: bytes | None, link: str | None = None) -> TableSession:
        """The session of a table, created at the first use; by a broadcast link nothing is kept."""
        session = self._sessions.get(table_id)
        if session is not None and session.error is None:
            return session
        # A player's heads, where this is a player's store too, are ahead of the broadcast.
        stored = self._store.table(table_id) if link is None else TableStore()
        if stored.evidence:
            sentence = stored.evidence[-1]["sentence"]
            raise HouseCheated(f"This table was left because the server cheated: {sentence}")
        pinned = bytes.fromhex(stored.record.get("key", ""))
        if key is not None and pinned and key != pinned:
            raise HouseCheated("This table's key has changed, so it is not the same table.")
        session = TableSession(
            table_id,
            self._connection,
            stored,
            key=key or pinned or None,
            cosigner=cosigner_at(stored, self._cosigner),
            link=link,
            on_event=self._on_event,
        )
        self._sessions[table_id] = session
        self._tables[table_id] = RemoteTable(session)
        return session

    async def _enter(self, method: str, params: Members, session: TableSession) -> RemoteTable:
        """Ask to join or watch, and start the session with the answer.

        Another session if it ended before the answer came: if the table is left while a request
        to join it is under way. An answer with a seat that is not newer than what the session had
        is about a seat that was left since; then DealerError.
        """
        table, seated = self._tables[session.id], session.verifier.seat is not None

        def answered(result: Members) -> None:
            nonlocal session, table
            if (error := session.error) is not None:
                was_left = "seat" in result and result["version"] <= session.verifier.version
                if was_left or session.store.evidence or isinstance(error, HouseCheated):
                    return
                session = self._follow(session.id, key=session.verifier.log.key)
                table = self._tables[session.id]
            session.joined(result, shared="ticket" in params or "jwt" in params)

        result = await self._ask(method, params, answered)
        await _caught_up(table, result["version"])
        if method == "table.join" and table.seat is not None and not seated:
            player = table.state.seats.get(table.seat)
            own = (params.get("name"), bytes.fromhex(params.get("key", "")) or None)
            named = "ticket" not in params and "jwt" not in params  # else the service's name
            if player is None or (named and (player.name, player.key) != own):
                session.accuse(method)
        return table

    async def _ask(self, method: str, params: Members, answered: Answered) -> Members:
        return await self._connection.ask(
            method, params, table=None, changes=method != "table.watch", answered=answered
        )


async def _caught_up(table: RemoteTable, version: int) -> RemoteTable:
    """The table at `version` at least; a warning is logged if its shuffles prove nothing."""
    await table.until(lambda table: table.version >= version)
    if table.insecure:
        log.warning("table %s: %s", table.id, INSECURE)
    return table


def join_command(stored: TableStore, params: Members) -> str:
    """The id of a join with these parameters, stored before it is sent.

    A program that was killed before the answer repeats the command with it, and gets the seat.
    """
    digest = sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()
    joining = stored.record.get("joining") or {}
    if joining.get("params") != digest:
        joining = {"cmd": str(uuid.uuid4()), "params": digest}
        stored.update(joining=joining)
    return str(joining["cmd"])


def default_name() -> str:
    """A name for a player who gives none; names are unique at a table."""
    return f"Guest {secrets.randbelow(9_000) + 1_000}"


def cosigner_at(
    stored: TableStore, cosigner: Cosigner | bool | None, *, create: bool = False
) -> Cosigner | None:
    """The key that cosigns at a table: `cosigner`, or with True the one in the table's store.

    With `create` the store gets a new one if it has none. Raises ConfigurationError if the stored
    key is damaged.
    """
    if isinstance(cosigner, Cosigner) or not cosigner:
        return cosigner or None
    if create and not stored.record.get("player_seed"):
        stored.update(player_seed=secrets.token_bytes(SEED_BYTES).hex())
    try:
        seed = bytes.fromhex(stored.record.get("player_seed", ""))
        return Cosigner(seed) if seed else None
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            "The client's cosigning key in its store is damaged: restore the store, or connect "
            "with cosigner=False."
        ) from error
