"""Programs that tests need: without them a test is skipped, and in CI it fails."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

from tests.harness.programs import output_of

GO_SOURCES = Path("/usr/share/gocode")
"""Where Debian's golang-…-dev packages are installed."""


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


def missing(reason: str) -> NoReturn:
    """Skip the test that calls this; in CI, where every program is installed, fail it."""
    if in_ci():
        pytest.fail(reason)
    pytest.skip(reason)


def program(name: str) -> str:
    """The path of a program whose Debian package has its name."""
    return shutil.which(name) or missing(f"{name} is not installed (Debian: {name})")


def openssl() -> str:
    """The path of OpenSSL 3 or newer."""
    found = program("openssl")
    name, version = output_of(found, "version").split()[:2]
    if name != "OpenSSL" or int(version.split(".")[0]) < 3:
        missing(f"`openssl kdf` requires OpenSSL 3; installed is {name} {version}")
    return found


def firefox() -> str:
    """The path of Firefox."""
    return shutil.which("firefox-esr") or shutil.which("firefox") or program("firefox-esr")


class WebKit(NamedTuple):
    """The paths of the programs that WebKitGTK needs to be driven."""

    driver: str
    browser: str
    screen: str


def webkit() -> WebKit:
    """WebKitGTK with its driver, and a screen in memory."""
    driver, screen = shutil.which("WebKitWebDriver"), shutil.which("Xvfb")
    browsers = [*Path("/usr").glob("lib/*/webkit2gtk-4.?/MiniBrowser")]
    if driver is None or not browsers:
        missing("WebKitGTK is not installed (Debian: webkit2gtk-driver)")
    if screen is None:
        missing("Xvfb is not installed (Debian: xvfb)")
    return WebKit(driver, str(browsers[0]), screen)


def go() -> str:
    """The path of Go, where golang.org/x/mod is installed as well."""
    found = shutil.which("go") or missing("go is not installed (Debian: golang-go)")
    if not (GO_SOURCES / "src/golang.org/x/mod/sumdb").is_dir():
        missing("golang.org/x/mod is not installed (Debian: golang-golang-x-mod-dev)")
    return found
