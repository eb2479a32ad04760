"""The address at which other computers reach a server that listens on every address."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from dealer.cli.commands import serve
from dealer.cli.commands.serve import network_address
from tests.harness.server_process import ServerProcess


@pytest.mark.parametrize("destination", [("127.0.0.1", 9), ("255.255.255.255", 9)])
def test_without_a_network_there_is_none(
    monkeypatch: pytest.MonkeyPatch, destination: tuple[str, int]
) -> None:
    monkeypatch.setattr(serve, "ELSEWHERE", destination)  # this computer; not allowed
    assert network_address() is None


@pytest.mark.parametrize(("host", "printed"), [("0.0.0.0", True), ("127.0.0.1", False)])
async def test_a_server_on_every_address_prints_the_one_in_the_network(
    tmp_path: Path, host: str, printed: bool
) -> None:
    address = network_address()
    async with ServerProcess(tmp_path, host=host) as server:
        line = f"Players in the same network open http://{address}:{server.port}/\n"
        assert (line in server.output.read_text()) == (printed and address is not None)
        if printed and address is not None:
            assert not IPv4Address(address).is_loopback
            with socket.create_connection((address, server.port), timeout=10):
                pass
