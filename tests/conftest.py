"""Test tiers, their order on parallel workers, and the PostgreSQL server.

The quick tier is every test of the folders that mirror the rooms, except those that use PostgreSQL
and those marked `slow`. Plain `pytest` runs the quick tier; `--all`, `CI=true` and naming files or
folders run every test that was collected.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from tests.harness.installed import in_ci
from tests.harness.postgres import OwnServer, Postgres, any_server, own_server

TESTS = Path(__file__).parent
FOLDERS = ("chaos", "e2e", "browser", "foreign")
TIERS = (*FOLDERS, "slow", "postgres", "quick")
"""In the order in which they start: the slowest first, so that no worker ends with one of them."""

TEARDOWN_LIMIT = 15
"""Seconds for each step of the teardown of a test that failed."""

# Without compiled files, every server and command that a test starts compiles its modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Examples have no time limit: the machine may be busy.
settings.register_profile("all", deadline=None, max_examples=60)
settings.register_profile("quick", deadline=None, max_examples=25)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help=f"run every tier: {', '.join(TIERS)}")


def pytest_configure(config: pytest.Config) -> None:
    for marker in (
        "slow: not in the quick tier",
        "reuse_pages(yes=True): open_page may give pages of earlier tests (browser/page_pool.py); "
        "not for tests that change a page for good, for example with scripts or routes",
    ):
        config.addinivalue_line("markers", marker)
    config.option.all = runs_all(config)
    settings.load_profile("all" if in_ci() else "quick")


def runs_all(config: pytest.Config) -> bool:
    """Whether all tiers run; can be asked before `pytest_configure`."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return bool(config.option.all or in_ci() or named)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """More workers than processors, because many tests wait for servers, browsers or the disk.

    None for a single file, which starts faster in this process.
    """
    if len(config.args) == 1 and Path(config.args[0].partition("::")[0]).is_file():
        return 0
    return len(os.sched_getaffinity(0)) + (2 if runs_all(config) else 1)


class _TierScheduling(LoadFileScheduling):
    """A file stays on one worker, with its fixtures; what is long is scheduled singly."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(("tests/chaos/", "tests/e2e/", "tests/browser/test_games.py")):
            return nodeid
        return str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _TierScheduling:
    return _TierScheduling(config, log)


@pytest.hookimpl(trylast=True)  # after coverage has begun
def pytest_sessionstart(session: pytest.Session) -> None:
    """Each worker imports its share of the modules first, and so writes their compiled files.

    Otherwise every worker of a fresh clone compiles every module: they collect in the same order.
    """
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    skipped = () if session.config.option.all else FOLDERS
    files = [
        file.relative_to(TESTS.parent)
        for file in sorted(TESTS.glob("*/**/test_*.py"))
        if file.relative_to(TESTS).parts[0] not in ("bench", *skipped)
    ]
    own = files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for file in own:
            # What fails here is imported again, and reported, when it is collected.
            with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):
                import_module(".".join(file.with_suffix("").parts))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Folders outside the quick tier are not imported for it."""
    if not config.option.all and collection_path.parent == TESTS:
        return collection_path.name in FOLDERS or None
    return None


def tier_of(item: pytest.Item) -> str:
    folder = item.path.relative_to(TESTS).parts[0]
    if folder in FOLDERS:
        return folder
    if item.get_closest_marker("slow"):
        return "slow"
    parameters = getattr(item, "callspec", None)
    if parameters is not None and "postgres" in parameters.params.values():
        return "postgres"
    return "postgres" if "postgres" in getattr(item, "fixturenames", ()) else "quick"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers = {item: tier_of(item) for item in items}
    if not config.option.all:
        config.hook.pytest_deselected(items=[item for item in items if tiers[item] != "quick"])
        items[:] = [item for item in items if tiers[item] == "quick"]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: TIERS.index(tiers[item]))


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: each full garbage collection would search them all."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """On a worker `--cov` traces the imports and the quick tests: others would be far slower."""
    plugin = item.config.pluginmanager.getplugin("_cov")
    if plugin is None or not hasattr(item.config, "workerinput"):
        return
    tracing, quick = plugin.cov_controller, tier_of(item) == "quick"
    if quick and not tracing.started:
        tracing.resume()
    elif tracing.started and not quick:
        tracing.pause()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Limit a teardown, too: pytest-timeout switches itself off after a test that it ended."""
    if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        return (yield)

    def end(*_: object) -> None:
        pytest.fail(f"The teardown took longer than {TEARDOWN_LIMIT} seconds")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, TEARDOWN_LIMIT, TEARDOWN_LIMIT)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not config.option.all:
        *others, _ = TIERS
        terminalreporter.write_line(
            f"Not run: {', '.join(others)}. `pytest --all` runs every test, "
            "`pytest FOLDER` all of a folder."
        )


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server; a test that needs one is skipped without it, and fails in CI."""
    with any_server() as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[OwnServer]:
    """A PostgreSQL server of this test alone, which may stop it; commits survive."""
    with own_server(safe=True) as server:
        yield server
