"""Clock skew: a server whose clock differs from the database's does not start, or is not ready."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dealer.errors import ConfigurationError
from dealer.gateway import serve
from dealer.service.build import open_service
from dealer.service.clock import Clock, utc_ms
from dealer.service.operations import probe
from dealer.service.service import ServiceOptions
from tests.gateway.http_client import get


@pytest.fixture
def skew() -> list[int]:
    """Milliseconds, in a list, that the server's clock is ahead."""
    return [0]


def skewed(skew: list[int]) -> Clock:
    return lambda: utc_ms() + skew[0]


@pytest.mark.parametrize(("ms", "message"), [(11_500, "11 s ahead of"), (-3_500, "3 s behind")])
async def test_a_server_with_a_wrong_clock_does_not_start(
    postgres_url: str, tmp_path: Path, skew: list[int], ms: int, message: str
) -> None:
    skew[0] = ms
    clock = f"clock is {message} the database server's; set both by NTP"
    with pytest.raises(ConfigurationError, match=clock):
        async with open_service(
            postgres_url, ServiceOptions(clock=skewed(skew)), house_key=tmp_path / "house.key"
        ):
            pass


async def test_the_server_is_not_ready_while_its_clock_is_wrong(
    postgres_url: str,
    tmp_path: Path,
    skew: list[int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("INFO", "dealer.service.operations.probe")
    monkeypatch.setattr(probe, "SECONDS", 3600.0)
    async with (
        open_service(
            postgres_url, ServiceOptions(clock=skewed(skew)), house_key=tmp_path / "house.key"
        ) as service,
        serve(service, port=0, ops_port=0) as gateway,
    ):
        for ms, state in ((1_500, "ready"), (-1_500, "ready"), (5_500, "5 s ahead"), (0, "ready")):
            skew[0] = ms
            await gateway.probe.check()
            answer = await get(gateway.ops_port, "/readyz")
            assert state in answer.text
            assert (answer.status == 200) == (state == "ready")
            assert (answer.status == 200) == answer.text.startswith("ready\nPostgreSQL 1")
        for ms in (5_500, 5_500, -9_500):
            skew[0] = ms
            await gateway.probe.check()
    logged = [
        vars(record)["fields"] for record in caplog.records if record.getMessage() == "readiness"
    ]
    assert [re.findall(r"[0-9]+ s [a-z]+", fields.get("says", "")) for fields in logged] == [
        ["5 s ahead"], [], ["5 s ahead"], ["9 s behind"],
    ]  # fmt: skip


async def test_a_file_has_no_clock_to_compare_with(tmp_path: Path, skew: list[int]) -> None:
    skew[0] = 60_000
    async with open_service(
        f"sqlite:///{tmp_path / 'dealer.db'}", ServiceOptions(clock=skewed(skew))
    ):
        pass
