"""The web app manifest, and the service worker of the audit page."""

from __future__ import annotations

import json
import re
import struct
from urllib.parse import urljoin

import pytest

from dealer.gateway.pages.appearance import Appearance
from dealer.gateway.pages.page_files import make_worker
from dealer.languages.language import languages
from tests.gateway.http_client import get


async def test_the_manifest_names_the_server_and_icons_of_their_sizes(open_gateway) -> None:
    gateway = await open_gateway(appearance=Appearance("Café"))
    got = await get(gateway.port, "/manifest.webmanifest")
    assert (got.status, got.headers["content-type"]) == (200, "application/manifest+json")
    manifest = json.loads(got.body)
    assert (manifest["name"], manifest["start_url"], manifest["display"]) == (
        "Café", "./", "minimal-ui",
    )  # fmt: skip
    assert "id" not in manifest  # it would not be relative to the manifest
    assert {(one["sizes"], one["purpose"]) for one in manifest["icons"]} == {
        ("192x192", "any"), ("512x512", "any"), ("512x512", "maskable"),
    }  # fmt: skip
    for icon in manifest["icons"]:
        image = await get(gateway.port, urljoin("/manifest.webmanifest", icon["src"]))
        assert image.headers["content-type"] == "image/png"
        width, height = struct.unpack(">II", image.body[16:24])  # the chunk IHDR
        assert f"{width}x{height}" == icon["sizes"]


async def test_the_worker_lists_every_file_that_the_audit_page_loads(open_gateway) -> None:
    appearance = Appearance("Club", (".svg", b"<svg/>"), {"--felt": "#1d3b6a"})
    gateway = await open_gateway(appearance=appearance)
    got = await get(gateway.port, "/audit-worker.js")
    assert got.headers["content-type"] == "text/javascript"
    assert got.headers["cache-control"] == "no-cache"
    found = re.search(r'FOLDER = "(.*?)".*?FILES = (\[.*?\]);', got.text, re.DOTALL)
    assert found is not None
    folder, files = found[1], set(json.loads(found[2]))
    page = (await get(gateway.port, "/audit")).text
    todo = set(re.findall(rf'(?:href|src|content)="\.{folder}([^"]+)"', page))
    loaded: set[str] = set()
    while todo:
        path = todo.pop()
        loaded.add(path)
        file = await get(gateway.port, folder + path)
        assert file.status == 200
        if path.endswith(".js"):
            for imported in re.findall(r'^import .*?from "(.*?)";', file.text, re.M | re.S):
                todo |= {urljoin(path, imported)} - loaded
    loaded |= {f"texts/{tag}/audit.json" for tag in languages()}  # one of them is loaded
    assert loaded <= files <= loaded | {"icon.svg"}  # which the logo replaces


async def test_the_worker_of_another_version_has_other_bytes(open_gateway) -> None:
    workers = set()
    for title, felt in (("One", "#1d3b6a"), ("Two", "#1d3b6a"), ("Two", "#3b1d6a")):
        gateway = await open_gateway(appearance=Appearance(title, None, {"--felt": felt}))
        workers.add((await get(gateway.port, "/audit-worker.js")).body)
    assert len(workers) == 3


def test_a_worker_that_would_keep_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="does not declare"):
        make_worker("const files = [];", [], page="", folder="/")


async def test_pages_may_load_the_manifest_and_the_worker(gateway) -> None:
    for path in ("/", "/audit"):
        page = await get(gateway.port, path)
        policy = page.headers["content-security-policy"]
        assert "manifest-src 'self'; worker-src 'self'" in policy
        assert '<link rel="manifest" href="./manifest.webmanifest">' in page.text
