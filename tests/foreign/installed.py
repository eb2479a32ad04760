"""Programs that others wrote: a test that needs one is skipped without it, and in CI it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

GO_SOURCES = Path("/usr/share/gocode")  # where Debian's golang-…-dev packages are


def openssl() -> str:
    found = shutil.which("openssl")
    if found is None:
        missing("openssl is not installed")
    asked = subprocess.run([found, "version"], capture_output=True, check=True, encoding="utf-8")
    name, version = asked.stdout.split()[:2]
    if name != "OpenSSL" or int(version.split(".")[0]) < 3:
        missing(f"`openssl kdf` came with OpenSSL 3, and this is {name} {version}")
    return found


def go() -> str:
    found = shutil.which("go")
    if found is None:
        missing("go is not installed (Debian: golang-go)")
    if not (GO_SOURCES / "src/golang.org/x/mod/sumdb").is_dir():
        missing("golang.org/x/mod is not installed (Debian: golang-golang-x-mod-dev)")
    return found


def missing(reason: str) -> NoReturn:
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(reason)
    pytest.skip(reason)
