"""Players with tokens of a real OpenID provider, npm's oidc-provider.

Users sign in and get ID tokens; programs ask for access tokens (RFC 9068).
"""

from __future__ import annotations

import asyncio
import secrets
from asyncio.subprocess import DEVNULL, PIPE, Process
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest

from dealer.errors import BadToken
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.identity import AGAIN_SECONDS, Issuer
from tests.gateway import rpc_client
from tests.gateway.conftest import ManualClock
from tests.gateway.rpc_client import RpcClient
from tests.harness.npm import BUILD, command
from tests.harness.server_process import PATIENT, ServerProcess

PROGRAM = Path(__file__).with_name("oidc_provider.mjs").read_text(encoding="utf-8")
AUDIENCE = "https://cards.example"


class Provider:
    """The running provider; its issuer is `url`."""

    def __init__(self, process: Process, url: str) -> None:
        self.url = url
        self._process = process

    async def token(self, user: str = "ada", *, audience: str = AUDIENCE) -> str:
        """A new access token, asked for at the provider's token endpoint."""
        async with httpx.AsyncClient(timeout=PATIENT) as client:
            answer = await client.post(
                f"{self.url}/token",
                auth=(user, f"secret-of-{user}"),
                data={"grant_type": "client_credentials", "resource": audience, "scope": "play"},
            )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    async def sign_in(self, user: str) -> str:
        """The ID token of a user who signs in: authorization code with PKCE (RFC 7636)."""
        verifier = secrets.token_urlsafe(32)
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        redirect = f"{self.url}/signed-in"
        asked = {
            "client_id": "club",
            "response_type": "code",
            "scope": "openid profile",
            "redirect_uri": redirect,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "login_hint": user,
        }
        async with httpx.AsyncClient(timeout=PATIENT) as browser:
            answer = await browser.get(f"{self.url}/auth", params=asked)
            while not (url := answer.headers["location"]).startswith(redirect):
                answer = await browser.get(urljoin(self.url, url))
            code = httpx.URL(url).params["code"]
            form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
            form |= {"client_id": "club", "redirect_uri": redirect}
            answer = await browser.post(f"{self.url}/token", data=form)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id_token"])

    async def order(self, line: str) -> None:
        """`rotate` or `clock SECONDS`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n".encode())
        assert await asyncio.wait_for(self._process.stdout.readline(), PATIENT) == b"done\n"

    async def token_of_an_hour_ago(self) -> str:
        """A token that was valid for ten minutes."""
        await self.order("clock -3600")
        token = await self.token()
        await self.order("clock 0")
        return token


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    process = await asyncio.create_subprocess_exec(
        *command(PROGRAM, packages=("jose", "oidc-provider")),
        cwd=BUILD,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    url = await asyncio.wait_for(process.stdout.readline(), PATIENT)
    yield Provider(process, url.decode().strip())
    process.stdin.close()
    await process.wait()


@asynccontextmanager
async def player(server: ServerProcess) -> AsyncIterator[RpcClient]:
    client = await RpcClient.connect(server.port)
    yield client
    await client.close()


async def refusal(request: Any) -> tuple[str, str]:
    """The reason and the sentence of a refused request."""
    refused = await rpc_client.refusal(request)
    return str(refused.reason), str(refused)


async def test_users_take_their_seats(provider: Provider, tmp_path: Path) -> None:
    """From a token endpoint to a seat, to the same seat on another device, and to refusals."""
    issuer = {"issuer": provider.url, "audience": AUDIENCE, "jwks": f"{provider.url}/jwks"}
    async with (
        ServerProcess(tmp_path, **issuer) as server,
        player(server) as phone,
        player(server) as laptop,
        player(server) as bob,
    ):
        table = (await bob.call("table.open"))["table"]
        first = await phone.call("table.join", table=table, jwt=await provider.token())
        again = await laptop.call("table.join", table=table, jwt=await provider.token())
        assert (again["seat"], again["token"]) == (first["seat"], first["token"])
        assert await phone.wait_closed() == CloseCode.SUPERSEDED
        wrong = await provider.token("bob", audience="https://other.example")
        assert await refusal(bob.call("table.join", table=table, jwt=wrong)) == (
            "bad_token", "This JWT is for another audience.",
        )  # fmt: skip
        late = await provider.token_of_an_hour_ago()
        assert await refusal(bob.call("table.join", table=table, jwt=late)) == (
            "bad_token", "This JWT has expired; sign in again.",
        )  # fmt: skip
        joined = await bob.call("table.join", table=table, jwt=await provider.token("bob"))
        names = [seat["name"] for seat in joined["state"]["seats"]]
        assert names == ["ada of the club", "bob of the club"]


async def test_users_who_sign_in(provider: Provider, tmp_path: Path) -> None:
    """Their ID tokens are for the client that they signed in at."""
    options = {"issuer": provider.url, "audience": "club"}
    async with ServerProcess(tmp_path, **options) as server, player(server) as ada:
        table = (await ada.call("table.open"))["table"]
        jwt = await provider.sign_in("ada")
        joined = await ada.call("table.join", table=table, jwt=jwt)
        assert [seat["name"] for seat in joined["state"]["seats"]] == ["ada Ω"]
        async with player(server) as laptop, player(server) as bob:
            again = await laptop.call("table.join", table=table, jwt=await provider.sign_in("ada"))
            assert again["token"] == joined["token"]
            assert await ada.wait_closed() == CloseCode.SUPERSEDED
            joined = await bob.call("table.join", table=table, jwt=await provider.sign_in("bob"))
            assert joined["seat"] == 2


async def test_a_server_that_starts_after_a_rotation_has_the_new_key(
    provider: Provider, tmp_path: Path
) -> None:
    """The issuer's configuration says where its keys are; a withdrawn one is not accepted."""
    server = ServerProcess(tmp_path, issuer=provider.url, audience=AUDIENCE)
    old = await provider.token()
    async with server, player(server) as ada, player(server) as again:
        table = (await ada.call("table.open"))["table"]
        seat = (await ada.call("table.join", table=table, jwt=old))["seat"]
        await provider.order("rotate")
        new = await provider.token()
        reason, sentence = await refusal(again.call("table.join", table=table, jwt=new))
        assert (reason, "does not have" in sentence) == ("bad_token", True)
    async with server, player(server) as ada:
        reason, _ = await refusal(ada.call("table.join", table=table, jwt=old))
        assert reason == "bad_token"
        assert (await ada.call("table.join", table=table, jwt=new))["seat"] == seat


async def test_a_rotated_key_is_found_after_a_minute(provider: Provider) -> None:
    clock = ManualClock(1000.0)
    issuer = Issuer(provider.url, audience=AUDIENCE, keys=None, clock=clock)
    assert (await issuer.verify(await provider.token())).subject == "ada"
    await provider.order("rotate")
    token = await provider.token()
    with pytest.raises(BadToken, match="does not have"):
        await issuer.verify(token)
    clock.now += AGAIN_SECONDS
    assert (await issuer.verify(token)).names == ("ada of the club",)
