"""Alerts and dashboard: valid, each alert tested, and every metric that they name is exported."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.harness.composed import fetch
from tests.harness.installed import missing
from tests.harness.nodes import Node
from tests.harness.programs import output_of

FOLDER = Path(__file__).parents[2] / ".compose"
RULES = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))

SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
}


def promtool(*arguments: str | Path) -> None:
    program = shutil.which("promtool") or missing("promtool is not installed (Debian: prometheus)")
    output_of(program, *arguments)


def expressions() -> Iterator[str]:
    """The queries of the dashboard, with a value for each of its variables."""
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    found += [annotation["expr"] for annotation in DASHBOARD["annotations"]["list"]]
    for expression in found:
        text = expression.replace("$__rate_interval", "5m")
        for name in ("job", "instance"):
            text = text.replace(f"${name}", "any")
        assert "$" not in text, expression
        yield text


def metrics(text: str) -> set[str]:
    return set(re.findall(r"\b(?:dealer|process)_[a-z_]+\b", text))


@pytest.fixture
async def exported(tmp_path: Path) -> AsyncIterator[set[str]]:
    """The names that a server's samples can have."""
    node = Node(tmp_path, name="node", address=f"sqlite:///{tmp_path / 'dealer.db'}")
    await node.open()
    page = await asyncio.to_thread(fetch, node.ops_port, "/metrics")
    yield {
        family.name + suffix
        for family in text_string_to_metric_families(page.decode())
        for suffix in SUFFIXES[family.type]
    }
    await node.close()


async def test_every_metric_of_rules_and_dashboard_is_exported(exported: set[str]) -> None:
    variables = [variable["query"] for variable in DASHBOARD["templating"]["list"]]
    named = metrics("\n".join([RULES, *expressions(), *variables]))
    assert len(named) > 30
    assert named <= exported


def test_the_rules_and_the_configuration_are_valid() -> None:
    promtool("check", "rules", FOLDER / "alerts.yml")
    promtool("check", "config", "--syntax-only", FOLDER / "prometheus.yml")


def test_each_alert_fires_when_it_should_and_only_then() -> None:
    promtool("test", "rules", FOLDER / "alerts_test.yml")
    tests = (FOLDER / "alerts_test.yml").read_text(encoding="utf-8")
    alerts = re.findall(r"- alert: (\w+)", RULES)
    assert len(alerts) > 20
    for alert in alerts:
        fires, quiet = re.findall(rf"alertname: {alert}\n +exp_alerts:(.*)", tests)
        assert (fires, quiet) == ("", " []"), alert


def test_the_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    rules: list[dict[str, Any]] = [
        {"record": f"panel:{number}", "expr": text} for number, text in enumerate(expressions())
    ]
    assert len(rules) > 40
    file = tmp_path / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", file)


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
