"""Static files: addresses, caching, compression and security headers."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from base64 import b64encode
from importlib import resources
from pathlib import Path

import pytest

from dealer.gateway.pages import static_files
from dealer.gateway.pages.static_files import StaticFiles, shortened
from dealer.version import __version__
from tests.gateway.http_client import get

WEB = resources.files("dealer") / "web"


async def folder_of(gateway) -> str:
    page = await get(gateway.port, "/")
    found = re.search(r"/web/([0-9a-f]{16})/", page.text)
    assert found is not None
    return found[1]


async def test_a_page_refers_to_the_files_of_its_version(gateway) -> None:
    folder = await folder_of(gateway)
    got = await get(gateway.port, f"/web/{folder}/verify.js")
    assert got.body == shortened((WEB / "verify.js").read_bytes())
    assert got.headers["content-type"] == "text/javascript"
    assert got.headers["cache-control"] == "max-age=31536000, immutable"


def test_comments_indentation_and_blank_lines_are_left_out() -> None:
    script = b'/** Of\n * two. */\nf(); // of f\n  // not\n  /** one */\n  g("/** a */");\n'
    assert shortened(script) == b'f();\ng("/** a */");\n'
    assert shortened(b"  g(' // a', `//`); // g's\n") == b"g(' // a', `//`); // g's\n"


async def test_a_stylesheet_is_sent_with_those_that_it_imports(gateway) -> None:
    folder = await folder_of(gateway)
    got = (await get(gateway.port, f"/web/{folder}/table.css")).text
    assert (WEB / "table.css").read_text().count("@import") > 5
    assert "@import" not in got
    assert "/*" not in got
    places = [got.index(rule) for rule in (".card{", "#felt{", "#hand{", "#tools{")]
    assert places == sorted(places)
    part = (await get(gateway.port, f"/web/{folder}/table/hand.css")).text
    assert part in got
    assert not re.search(r"\s[{};,]|[{};,]\s|;}", got)


def test_no_string_of_a_stylesheet_looks_like_its_rules() -> None:
    """Space beside these signs is left out when the stylesheet is sent."""
    for path in Path(str(WEB)).rglob("*.css"):
        for string in re.findall(r'"[^"\n]*"', path.read_text()):
            assert not re.search(r"[{};,]|: ", string), path


async def test_programs_of_other_origins_get_the_scripts_with_their_comments(gateway) -> None:
    got = await get(gateway.port, "/verify.js")
    assert got.body == (WEB / "verify.js").read_bytes()


def test_the_hash_depends_on_every_path_and_byte() -> None:
    """A changed file has another address, so that the content of an address never changes."""
    before = StaticFiles()
    assert StaticFiles().hash == before.hash
    for changed in (
        before.files | {"new.js": before.files["verify.js"]},
        before.files | {"verify.js": static_files.File(b"other", static_files.SCRIPT)},
    ):
        after = StaticFiles()
        after.__dict__["files"] = changed
        assert after.hash != before.hash


@pytest.mark.parametrize("path", ["/client/nothing.js", "/client/../verify.js", "/lobby.js"])
async def test_no_other_files_have_an_address_without_a_hash(gateway, path) -> None:
    assert (await get(gateway.port, path)).status == 404


async def test_files_of_another_version_are_not_cached(gateway) -> None:
    got = await get(gateway.port, f"/web/{'0' * 16}/verify.js")
    assert (got.status, got.headers["cache-control"]) == (200, "no-store")


@pytest.mark.parametrize("path", ["nothing.js", "../errors.py", "", ".", "table/../verify.js"])
async def test_only_files_of_the_folder_are_served(gateway, path) -> None:
    folder = await folder_of(gateway)
    assert (await get(gateway.port, f"/web/{folder}/{path}")).status == 404


@pytest.mark.parametrize("path", ["/", "/audit", "/client.js", "/client/house.js", "/verify.js"])
async def test_an_unchanged_file_is_not_sent_again(gateway, path) -> None:
    first = await get(gateway.port, path)
    assert first.headers["cache-control"] == "no-cache"
    again = await get(gateway.port, path, If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    other = await get(gateway.port, path, If_None_Match='"0"')
    assert (other.status, other.body) == (200, first.body)


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("gzip;q=0, br", False),
        ("gzip;q=0.00", False),
        ("identity", False),
    ],
)
async def test_files_are_compressed_for_clients_that_accept_it(
    gateway, accepted, compressed
) -> None:
    got = await get(gateway.port, "/verify.js", Accept_Encoding=accepted)
    assert (got.headers.get("content-encoding") == "gzip") is compressed
    assert got.headers["vary"] == "Accept-Encoding"
    body = gzip.decompress(got.body) if compressed else got.body
    assert body == (WEB / "verify.js").read_bytes()


async def test_other_origins_may_import_the_client_but_not_load_pages(gateway) -> None:
    for path in (
        *("/client.js", "/client/house.js", "/client.d.ts", "/verify.js", "/verify.d.ts"),
        *(f"/client-{__version__}.js", "/integrity.json"),
    ):
        headers = (await get(gateway.port, path)).headers
        assert headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in (await get(gateway.port, "/")).headers


async def test_an_address_with_the_version_never_changes_and_has_a_hash(gateway) -> None:
    named = json.loads((await get(gateway.port, "/integrity.json")).body)
    assert named["version"] == __version__
    assert list(named["scripts"]) == [f"/client-{__version__}.js", f"/verify-{__version__}.js"]
    for path, integrity in named["scripts"].items():
        got = await get(gateway.port, path)
        assert got.headers["cache-control"] == "max-age=31536000, immutable"
        digest = b64encode(hashlib.sha384(got.body).digest()).decode()
        assert integrity == f"sha384-{digest}"
    assert got.body == (WEB / "verify.js").read_bytes()
    assert (await get(gateway.port, "/client-0.0.9.js")).status == 404


@pytest.mark.parametrize("path", ["/", "/audit"])
async def test_every_page_has_a_strict_policy(gateway, path) -> None:
    headers = (await get(gateway.port, path)).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/nowhere", "/verify.js", "/client.d.ts", "/openrpc.json"])
async def test_responses_are_not_sniffed_and_set_no_cookie(gateway, path) -> None:
    headers = (await get(gateway.port, path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers
