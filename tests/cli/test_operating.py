"""OPERATING.md and REFERENCE.md agree with the program: settings, log lines, metrics, commands."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dealer.config.settings import LIMIT_VARIABLE, LIMITS, SETTINGS, Settings
from dealer.gateway import serve
from dealer.service.build import open_service
from tests.gateway.http_client import get

from .conftest import Ask, Played

pytestmark = pytest.mark.slow

DEALER = Path(__file__).parents[2] / "dealer"
DOCUMENT = (DEALER / "cli" / "OPERATING.md").read_text(encoding="utf-8")
REFERENCE = (DEALER / "cli" / "REFERENCE.md").read_text(encoding="utf-8")


def table(section: str, document: str = REFERENCE) -> list[list[str]]:
    """The cells of the rows of the one table in a section."""
    text = document.split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


def test_the_settings() -> None:
    defaults = Settings()
    expected = [
        [
            one.flag and f"`{one.flag}`",
            f"`{one.variable}`",
            _default(getattr(defaults, one.name)),
            one.help,
        ]
        for one in SETTINGS
    ] + [
        [
            f"`--limit {one.name}=`",
            f"`{LIMIT_VARIABLE}{one.name.upper()}`",
            _default(getattr(defaults.limits, one.name)),
            LIMITS[one.name],
        ]
        for one in fields(defaults.limits)
    ]
    assert table("Settings") == expected


def _default(value: object) -> str:
    return "" if value in (None, ()) else f"`{value}`"


LOGGERS = (
    "log",
    "log_",
    "_log",
    "context.log_throttle",
    "self.context.log_throttle",
    "self._context.log_throttle",
    "self._log_throttle",
    "self._origin_throttle",
    "_log_throttle()",
    "throttle",
)


def events() -> set[str]:
    """Every log event of the server's code."""
    found: set[str] = set()
    for path in DEALER.rglob("*.py"):
        if path.is_relative_to(DEALER / "client"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                # Also as in `partial(LastingFailure, _log, "…")`.
                case ast.Call(func=ast.Name("LastingFailure"), args=[_, ast.Constant(str(name))]):
                    found.add(name)
                case ast.Call(args=[ast.Name("LastingFailure"), _, ast.Constant(str(name))]):
                    found.add(name)
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if ast.unparse(node.func.value) not in LOGGERS:
                continue
            second = node.func.attr in ("log", "say", "say_error")
            if second or node.func.attr in ("debug", "info", "warning", "error", "exception"):
                match node.args[second]:
                    case ast.Constant(value=str(name)):
                        found.add(name)
                    case other:
                        assert ast.unparse(other) == "event"  # "disabled" and "enabled"
    return found | {"disabled", "enabled"}


def test_the_log_lines() -> None:
    assert {name for row in table("Log lines") for name in code(row[0])} == events()


async def test_the_metrics(tmp_path: Path) -> None:
    async with (
        open_service(f"sqlite:///{tmp_path / 'dealer.db'}") as service,
        serve(service, port=0, ops_port=0) as gateway,
    ):
        page = (await get(gateway.ops_port, "/metrics")).text
    names = {
        family.name + "_total" * (family.type == "counter")
        for family in text_string_to_metric_families(page)
    }
    assert {name for row in table("Metrics") for name in code(row[0])} == names
    assert "# HELP dealer_calls_total " in page


def test_the_alerts() -> None:
    rules = (DEALER.parent / ".compose" / "alerts.yml").read_text(encoding="utf-8")
    named = [name for row in table("Alerts") for name in code(row[0])]
    assert named == re.findall(r"- alert: (\w+)", rules)


def test_the_quoted_messages_exist() -> None:
    source = " ".join(
        "".join(
            str(part.value) if isinstance(part, ast.Constant) else "\N{HORIZONTAL ELLIPSIS}"
            for part in (node.values if isinstance(node, ast.JoinedStr) else [node])
            if not isinstance(part, ast.Constant) or isinstance(part.value, str)
        )
        for path in DEALER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.JoinedStr, ast.Constant))
    )
    for row in table("Messages", DOCUMENT):
        for words in code(row[0]):
            assert words in source, words


def test_the_commands_run(ask: Ask, played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the document, on one database, except shell commands."""
    monkeypatch.chdir(played.folder)
    ran = 0
    for block in re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL):
        if "pg_dump" in block or "dealer restore" in block:
            continue  # test_backup.py runs them
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[0] == "mkdir":
                subprocess.run(words, check=True)
            if words[0] != "dealer" or words[1:2] == ["serve"]:
                continue
            arguments = [played.open if word == "TABLE" else word for word in words[1:]]
            answer = ask(*arguments)
            assert answer.code == 0, (line, answer)
            ran += 1
    assert ran > 12


@pytest.mark.parametrize("line", sorted(set(re.findall(r"`(dealer [^`]+)`", DOCUMENT))))
def test_the_commands_in_the_prose_are_known(ask: Ask, line: str) -> None:
    command, *rest = shlex.split(line)[1:]
    shown = ask(command, "--help").out
    for word in rest:
        if word.startswith("--"):
            assert word in shown


def test_the_readiness_messages_are_in_the_runbook() -> None:
    source = (DEALER / "service" / "operations" / "probe.py").read_text(encoding="utf-8")
    rows = [row[0] for row in table("Messages", DOCUMENT)]
    sentences = re.findall(r'return f?"([^"{]{3,})', source)
    assert len(sentences) == 3
    for sentence in (*sentences, "draining"):
        assert any(sentence.partition(";")[0].strip() in row for row in rows)


def test_the_help_of_the_journal_names_every_entry(ask: Ask) -> None:
    shown = re.sub(r"-\n\s*", "-", ask("journal", "--help").out)  # lines end at hyphens, too
    files = (path for path in DEALER.rglob("*.py") if "examples" not in path.parts)
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    entries = set(re.findall(r"""(?:[.]entry|[.]note)[(]\s*"([a-z-]+)",""", source))
    assert {"close", "archive", "disable", "migrate", "rebuild"} < entries
    for entry in entries:
        assert entry in shown
