"""The files that lie ready for every browser, and how they are kept there."""

from __future__ import annotations

import gzip
import re
from importlib import resources

import pytest

from dealer.gateway import static
from dealer.gateway.comments import without_comments
from dealer.gateway.static import Web
from tests.gateway.asking import get

WEB = resources.files("dealer") / "web"


async def folder_of(gateway) -> str:
    page = await get(gateway.port, "/")
    return re.search(r"/web/([0-9a-f]{16})/", page.text)[1]


async def test_a_page_names_the_files_of_its_version(gateway) -> None:
    folder = await folder_of(gateway)
    got = await get(gateway.port, f"/web/{folder}/verify.js")
    assert got.body.decode() == without_comments((WEB / "verify.js").read_text("utf-8"))
    assert got.headers["content-type"] == "text/javascript"
    assert got.headers["cache-control"] == "max-age=31536000, immutable"


async def test_the_address_of_the_files_is_that_of_what_is_sent(monkeypatch) -> None:
    """Another way of cutting them is another version: an address never changes its content."""
    before = Web()
    assert Web().hash == before.hash
    monkeypatch.setattr(static, "without_comments", str)
    after = Web()
    assert after.hash != before.hash


async def test_files_of_another_version_are_not_kept(gateway) -> None:
    got = await get(gateway.port, f"/web/{'0' * 16}/verify.js")
    assert (got.status, got.headers["cache-control"]) == (200, "no-store")


@pytest.mark.parametrize("path", ["nothing.js", "../errors.py", "", ".", "table/../verify.js"])
async def test_only_what_lies_in_the_folder(gateway, path) -> None:
    folder = await folder_of(gateway)
    assert (await get(gateway.port, f"/web/{folder}/{path}")).status == 404


@pytest.mark.parametrize("path", ["/", "/audit", "/client.js", "/verify.js"])
async def test_what_is_the_same_is_not_sent_again(gateway, path) -> None:
    first = await get(gateway.port, path)
    assert first.headers["cache-control"] == "no-cache"
    again = await get(gateway.port, path, If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    other = await get(gateway.port, path, If_None_Match='"0"')
    assert (other.status, other.body) == (200, first.body)


@pytest.mark.parametrize(
    ("accepts", "packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("gzip;q=0, br", False),
        ("gzip;q=0.00", False),
        ("identity", False),
    ],
)
async def test_packing(gateway, accepts, packed) -> None:
    got = await get(gateway.port, "/verify.js", Accept_Encoding=accepts)
    assert (got.headers.get("content-encoding") == "gzip") is packed
    assert got.headers["vary"] == "Accept-Encoding"
    body = gzip.decompress(got.body) if packed else got.body
    assert body == (WEB / "verify.js").read_bytes()


async def test_other_origins_may_import_the_client_and_nothing_of_the_pages(gateway) -> None:
    assert (await get(gateway.port, "/client.js")).headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in (await get(gateway.port, "/")).headers


@pytest.mark.parametrize("path", ["/", "/audit"])
async def test_a_strict_policy_on_every_page(gateway, path) -> None:
    headers = (await get(gateway.port, path)).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/nowhere", "/verify.js", "/client.d.ts", "/openrpc.json"])
async def test_nothing_is_taken_for_what_it_is_not(gateway, path) -> None:
    headers = (await get(gateway.port, path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers
