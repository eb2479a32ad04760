"""Tokens that another implementation has signed: the npm package jose."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from dealer.errors import BadToken
from dealer.gateway.identity import Issuer
from tests.harness.installed import missing
from tests.harness.programs import output_of

ROOT = Path(__file__).parents[2]
PROGRAM = """
import { generateKeyPair, exportJWK, SignJWT } from "jose";
const out = { keys: [], tokens: {} };
for (const [alg, options] of [["EdDSA", { crv: "Ed25519" }], ["ES256", {}], ["RS256", {}]]) {
  const { publicKey, privateKey } = await generateKeyPair(alg, options);
  out.keys.push({ ...await exportJWK(publicKey), kid: `key of ${alg}`, alg, use: "sig" });
  const claims = { name: "Zoë 🂡", preferred_username: "zoe" };
  out.tokens[alg] = await new SignJWT(claims)
    .setProtectedHeader({ alg, kid: `key of ${alg}`, typ: "JWT" })
    .setIssuer("https://login.example").setAudience("cards").setSubject("4711")
    .setIssuedAt().setNotBefore("0s").setExpirationTime("1m").sign(privateKey);
}
console.log(JSON.stringify(out));
"""


@pytest.fixture(scope="module")
def signed() -> dict:
    """A JWKS and a token for each algorithm."""
    node = shutil.which("node")
    if node is None or not (ROOT / "build/node_modules/jose").is_dir():
        missing("jose is not installed (npm install --prefix build jose)")
    command = [node, "--input-type=module", "--eval", PROGRAM]
    return dict(json.loads(output_of(*command, cwd=ROOT / "build")))


@pytest.mark.parametrize("algorithm", ["EdDSA", "ES256", "RS256"])
async def test_tokens_of_jose_are_accepted(signed, tmp_path: Path, algorithm: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": signed["keys"]}))
    clock = asyncio.get_running_loop().time
    issuer = Issuer("https://login.example", audience="cards", keys=str(file), clock=clock)
    token = signed["tokens"][algorithm]
    user = await issuer.verify(token)
    assert (user.subject, user.names) == ("4711", ("Zoë 🂡", "zoe"))
    head, body, signature = token.split(".")
    other = signed["tokens"]["ES256" if algorithm != "ES256" else "EdDSA"].split(".")[2]
    for forged in (f"{head}.{body}.{other}", f"{head}.{body[:-2]}.{signature}"):
        with pytest.raises(BadToken):
            await issuer.verify(forged)
