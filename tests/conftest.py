"""Test tiers and depths, their order on parallel workers, and the PostgreSQL server.

The quick tier is every test of the folders that mirror the rooms, except those that use PostgreSQL
and those marked `slow`. Plain `pytest` runs the quick tier. `CI=true` runs what every change has to
pass: all tiers of the rooms, and of the other folders the tests of `EACH_CHANGE`. `--all`, and
naming files or folders, run every test that was collected.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from tests.harness.depth import DEPTH
from tests.harness.installed import in_ci
from tests.harness.postgres import OwnServer, Postgres, any_server, own_server

TESTS = Path(__file__).parent
FOLDERS = ("consistency", "chaos", "e2e", "browser", "foreign", "distributions")
TIERS = (*FOLDERS, "slow", "postgres", "quick")
"""In the order in which they start: the slowest first, so that no worker ends with one of them."""

EACH_CHANGE = (
    "browser/test_main_paths.py",
    "browser/test_table.py",
    "browser/test_touch.py::test_a_game_is_played_with_a_finger[size0]",
    "browser/test_whole_game.py",
    "chaos/",
    "e2e/test_game.py",
    "e2e/test_two_servers.py",
    "foreign/test_openssl.py",
)
"""What every change has to pass of the folders outside the rooms, by the beginning of its id."""

ONLY_ALL = (
    "analysis/test_open_log.py::test_a_bundle_has_the_past_states_of_the_log[postgres]",
    "cli/test_lab.py::test_costs",
    "docs/test_site.py",
    "gateway/test_schema.py::test_the_asyncapi_parser_finds_no_fault",
    "model/test_model.py::test_a_planted_fault_is_found",
    "projector/test_several_projectors.py::test_twenty_thousand_tables_without_statistics",
    "service/test_table_cache.py::test_the_estimate_is_near_the_growth_of_a_process[large",
    "service/test_table_cache.py::test_the_estimate_is_near_the_growth_of_a_process[table",
    "simulation/test_simulation.py::test_a_failing_schedule_is_made_smaller",
)
"""Slow tests of the rooms of what seldom changes, by the beginning of their ids."""

MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4 << 30
"""A file system in memory, and how much has to be free in it to be used for temporary files."""

TEARDOWN_LIMIT = 15
"""Seconds for each step of the teardown of a test that failed."""

# Without compiled files, every server and command that a test starts compiles its modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Examples have no time limit: the machine may be busy.
settings.register_profile("all", deadline=None, max_examples=60)
settings.register_profile("quick", deadline=None, max_examples=25)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help=f"run every test: {', '.join(TIERS)}")
    parser.addoption("--tier", action="append", choices=TIERS, help="run this tier only")


def pytest_configure(config: pytest.Config) -> None:
    for marker in (
        "slow: not in the quick tier",
        "reuse_pages(yes=True): open_page may give pages of earlier tests (browser/page_pool.py); "
        "not for tests that change a page for good, for example with scripts or routes",
    ):
        config.addinivalue_line("markers", marker)
    # Databases in memory: a test that needs a disk's own behaviour replaces the disk.
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    os.environ[DEPTH] = "all" if config.option.all else ""  # read by `amount`
    settings.load_profile("all" if config.option.all else "quick")


def every_tier(config: pytest.Config) -> bool:
    """Whether all tiers run; can be asked before `pytest_configure`."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return bool(config.option.all or config.option.tier or in_ci() or named)


def chosen(item: pytest.Item) -> bool:
    """Whether a test runs: it belongs to the tiers and to the depth of this run."""
    config, tier = item.config, tier_of(item)
    if tier not in (config.option.tier or (TIERS if every_tier(config) else ("quick",))):
        return False
    if config.option.all or config.args_source is pytest.Config.ArgsSource.ARGS:
        return True
    name = item.nodeid.removeprefix("tests/")
    if name.startswith(ONLY_ALL):
        return False
    if name.startswith("docs/") and tier == "slow":
        return documents_changed()
    return name.partition("/")[0] not in FOLDERS or name.startswith(EACH_CHANGE)


@cache
def documents_changed() -> bool:
    """Whether this branch changes a document or a test of one; True where that is unknown."""
    base, head = (_git("merge-base", "HEAD", "origin/main"), _git("rev-parse", "HEAD"))
    if not base or base == head:
        return True
    return _git("diff", "--name-only", base, "--", "*.md", "dealer/docs", "tests/docs") != ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(TESTS.parent), *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8").stdout.strip()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """More workers than processors, because many tests wait for servers, browsers or the disk.

    None for a single file, which starts faster in this process.
    """
    if len(config.args) == 1 and Path(config.args[0].partition("::")[0]).is_file():
        return 0
    return len(os.sched_getaffinity(0)) + (2 if every_tier(config) else 1)


class _TierScheduling(LoadFileScheduling):
    """A file stays on one worker, with its fixtures; what is long is scheduled singly."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(
            ("tests/consistency/", "tests/chaos/", "tests/e2e/", "tests/browser/test_games.py")
        ):
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
    skipped = () if every_tier(session.config) else FOLDERS
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
    if not every_tier(config) and collection_path.parent == TESTS:
        return collection_path.name in FOLDERS or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """A file that imports a package that is not installed is skipped; in CI that is an error."""
    report = yield
    failure = report.call.excinfo and report.call.excinfo.value.__cause__
    if isinstance(failure, ModuleNotFoundError) and not in_ci():
        name = str(failure.name).partition(".")[0]
        if name not in ("dealer", "tests"):
            report.outcome, report.call = "skipped", None
            reason = f"{name} is not installed (pip install --group test-all)"
            report.longrepr = (str(collector.path), 0, f"Skipped: {reason}")
    return report


def tier_of(item: pytest.Item) -> str:
    folder = item.path.relative_to(TESTS).parts[0]
    if folder in FOLDERS:
        return folder
    if item.get_closest_marker("slow"):
        return "slow"
    parameters = getattr(item, "callspec", None)
    if parameters is not None and "postgres" in parameters.params.values():
        return "postgres"
    servers = {"postgres", "cluster"} & set(getattr(item, "fixturenames", ()))
    return "postgres" if servers else "quick"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if not chosen(item)])
    items[:] = [item for item in items if chosen(item)]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: TIERS.index(tier_of(item)))


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
    if not every_tier(config):
        *others, _ = TIERS
        terminalreporter.write_line(
            f"Not run: {', '.join(others)}. `pytest --all` runs every test, "
            "`pytest FOLDER` all of a folder."
        )
    elif left_out := len(terminalreporter.stats.get("deselected", ())):
        terminalreporter.write_line(
            f"Not run: {left_out} slow tests, most of {', '.join(FOLDERS)}, and larger counts; "
            "`pytest --all` runs them."
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
