"""The encoding of a single draw gives the same bytes as the general encoding."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.eventlog import Log
from dealer.eventlog.encryption import NONCE_BYTES, HouseKeys
from dealer.game.commands import Actor, Deal, Draw, StartShuffle, TakeSeat
from dealer.game.events import CardDrawn
from dealer.proof.tree import Tree
from dealer.service import CommitNotice, IdempotencyKey, LiveTable, Service, executor
from dealer.service.encoding import EncodedAppend, encode, encode_draw
from dealer.service.executor import NONCES
from dealer.service.requests import ANONYMOUS_SCOPE
from dealer.service.round_secret import RoundSecret
from tests.service.tables import HOST, OPEN_ROUND

TABLE = bytes(range(16))
SECRET = RoundSecret(table=TABLE, round=3, secret=b"s" * 64, wrapped=b"")
ASCII = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
NUMBERS = st.integers(0, 2**32 - 1)

DRAWS = st.builds(
    CardDrawn,
    round=NUMBERS,
    seat=NUMBERS,
    source=st.just("deck") | st.text(ASCII, min_size=1, max_size=32).map("pile:{}".format),
    slot=NUMBERS,
    card=st.text(ASCII, min_size=1, max_size=16),
)


@given(
    DRAWS,
    st.integers(0, 2**53 - 2),
    st.integers(0, 2**53 - 1),
    st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES),
    st.lists(st.binary(min_size=32, max_size=32), max_size=9),
)
def test_both_encodings_are_equal(
    event: CardDrawn, version: int, at: int, nonce: bytes, leaves: list[bytes]
) -> None:
    general, own = Tree(), Tree()
    general.extend(leaves)
    own.extend(leaves)
    found = EncodedAppend(TABLE, version)
    encode(
        [event],
        table=TABLE,
        version=version,
        at=at,
        tree=general,
        secret=SECRET,
        nonces=nonce,
        sign=lambda **_: "",
        into=found,
    )
    row, entry = encode_draw(
        event,
        table_id=TABLE.hex(),
        version=version + 1,
        at=at,
        tree=own,
        secret=SECRET,
        nonce=nonce,
        command="seat:1:2/a",
        digest=b"d" * 36,
    )
    (expected,) = found.rows
    assert row == expected._replace(command="seat:1:2/a", digest=b"d" * 36)
    assert [entry] == found.entries
    assert found.checkpoints == []
    assert (own.size, own.root()) == (general.size, general.root())


async def played(file: Path) -> tuple[list[Any], list[CommitNotice], LiveTable]:
    """The rows, the notices and the table of a game in which all random bytes are zeros."""
    async with await Log.open(f"sqlite:///{file}") as log:
        ticks = count(1_790_000_000_000)
        service = Service(log, HouseKeys(bytes(32)), clock=lambda: next(ticks))
        notices: list[CommitNotice] = []
        service.on_notice(lambda _, notice: notices.append(notice))
        key = IdempotencyKey(ANONYMOUS_SCOPE, "o" * 32)
        live_table, _ = await service.open_table({"preset": "free"}, key=key)
        for command in (TakeSeat("Ann"), TakeSeat("Bob"), OPEN_ROUND, StartShuffle(HOST)):
            await service.execute(live_table, command)
        for turn in range(5):
            key = IdempotencyKey("seat:1", str(turn), b"draw")
            done = await service.execute(live_table, Draw(Actor(seat=1)), key=key)
            assert (await service.execute(live_table, Draw(Actor(seat=1)), key=key)) == done
        await service.execute(live_table, Draw(Actor(seat=2), where="bottom"))
        await service.execute(live_table, Deal(HOST, 1, (2,)))
        await service.execute(live_table, Draw(Actor(seat=2), 2))
        rows = await log.fetch("SELECT * FROM events ORDER BY stream, version")
        await service.close()
        return rows, notices, live_table


async def test_a_game_has_the_same_rows_notices_and_state_with_both_encodings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = []

    def counted(event: CardDrawn, **given: Any) -> Any:
        single.append(event)
        return encode_draw(event, **given)

    monkeypatch.setattr(executor, "secrets", SimpleNamespace(token_bytes=bytes))
    monkeypatch.setattr(executor, "encode_draw", counted)
    rows, notices, live_table = await played(tmp_path / "own.db")
    assert len(single) == 7
    monkeypatch.setattr(executor, "CardDrawn", type("AnotherEvent", (), {}))
    general_rows, general_notices, general = await played(tmp_path / "general.db")
    assert len(single) == 7
    assert [row.type for row in rows].count("CardDrawn") == 9
    assert rows == general_rows
    assert notices == general_notices
    assert live_table.table == general.table
    assert live_table.tree.root() == general.tree.root()
    assert live_table.leaf == general.leaf


async def test_no_nonce_is_used_twice(service: Service) -> None:
    nonces = [service._executor._nonce() for _ in range(3 * NONCES)]
    assert len(set(nonces)) == 3 * NONCES
    assert {len(nonce) for nonce in nonces} == {NONCE_BYTES}
