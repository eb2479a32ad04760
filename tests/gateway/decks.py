"""Decks of the simple REST interface over real sockets, as a client uses them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import pytest
import pytest_asyncio

from dealer.gateway import Gateway
from dealer.gateway.decks.parameters import CARDS
from tests.gateway.conftest import serving
from tests.service.bare_service import bare_service

ORDER = list(CARDS)
"""The codes of a new deck."""


class Decks:
    """A client; `deck` is the id of the deck that it opened last."""

    def __init__(self, gateway: Gateway, **headers: str) -> None:
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{gateway.port}", headers=headers, timeout=20
        )
        self.deck = ""

    async def __aenter__(self) -> Self:
        await self.http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.http.__aexit__(kind, error, trace)

    async def get(self, path: str, status: int = 200, **parameters: Any) -> Any:
        """The answer to a path below `/api/deck/`, which must have this status."""
        answer = await self.http.get(f"/api/deck/{path}", params=parameters)
        assert answer.status_code == status, answer.text
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["content-type"] == "application/json"
        return answer.json()

    async def open(self, path: str = "new/", **parameters: Any) -> Any:
        """Open a deck, which the next calls are about."""
        answer = await self.get(path, **parameters)
        self.deck = answer["deck_id"]
        return answer

    async def ask(self, path: str = "", status: int = 200, **parameters: Any) -> Any:
        """The answer to a path of the deck."""
        return await self.get(f"{self.deck}/{path}", status, **parameters)

    async def codes(self, path: str, **parameters: Any) -> list[str]:
        """The codes of the cards in the answer to a path of the deck."""
        return codes(await self.ask(path, **parameters))

    async def listed(self, pile: str) -> list[str]:
        """The codes of the cards of a pile, from its bottom."""
        return codes((await self.ask(f"pile/{pile}/list/"))["piles"][pile])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deck_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """One server for the tests of a file, without rates."""
    folder: Path = tmp_path_factory.mktemp("decks")
    async with serving(bare_service(f"sqlite:///{folder / 'dealer.db'}")) as gateway:
        yield gateway


@pytest_asyncio.fixture(loop_scope="session")
async def decks(deck_server: Gateway) -> AsyncIterator[Decks]:
    """A client of that server."""
    async with Decks(deck_server) as decks:
        yield decks


def codes(answer: dict[str, Any]) -> list[str]:
    """The codes of the cards in an answer."""
    return [card["code"] for card in answer["cards"]]


def without_proof(answer: dict[str, Any]) -> dict[str, Any]:
    """The members of an answer that the original has, too."""
    return {name: value for name, value in answer.items() if not name.startswith("proof")}
