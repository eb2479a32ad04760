"""The JavaScript verifier against the test vectors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dealer.proof.bundle import checkpoint
from tests.proof.log_builder import vectors
from tests.web.js_verifier import ask

pytestmark = pytest.mark.slow


def answered(kind: str, **more: Any) -> list[tuple[dict[str, Any], Any]]:
    """Each vector of a kind, with the verifier's answer to its input."""
    given = vectors(kind)
    assert given
    return list(zip(given, ask({"do": kind, **v["in"], **more} for v in given), strict=True))


@pytest.mark.parametrize("kind", ["tape", "shuffle", "player", "slot", "root"])
def test_outputs(kind: str) -> None:
    for vector, answer in answered(kind):
        assert answer == vector["out"], vector["name"]


def test_secrets() -> None:
    for vector, answer in answered("secret"):
        wanted = {name: vector["out"][name] for name in ("length", "commitment", "salt_key")}
        assert answer == wanted, vector["name"]


def test_events() -> None:
    given = vectors("event")
    answers = ask({"do": "event", **v["in"], "jcs": v["out"]["jcs"]} for v in given)
    assert [answer["commit"] for answer in answers] == [v["out"]["commit"] for v in given]


def test_openings() -> None:
    for vector, answer in answered("opening"):
        assert answer == vector["out"], vector["name"]


def test_openings_in_bundles() -> None:
    for table in vectors("opened_bundles"):
        whole = table["in"]["lines"]
        asked = {"do": "verify", "key": table["in"]["key"], "saved": []}
        answers = ask(
            {
                **asked,
                "lines": [whole[line] if type(line) is int else line for line in case["lines"]],
            }
            for case in table["out"]
        )
        for case, answer in zip(table["out"], answers, strict=True):
            fault = answer["fault"]
            assert (fault and [fault["check"], fault["line"]]) == case["fault"], case["name"]
            for name in ("withheld_parts", "withheld_cosigners"):
                assert answer[name] == case[name], case["name"]


def test_openings_of_the_clients_events() -> None:
    for table in vectors("opened_frames"):
        given = table["in"]
        answers = ask(
            {"do": "client_event", **given, "frames": given["frames"][: one["after"]]}
            | {"frame": one["frame"]}
            for one in table["out"]
        )
        for one, answer in zip(table["out"], answers, strict=True):
            assert answer["ok"] == one["ok"], one["name"]
            if one["ok"]:
                part = one["frame"].get("opened", {"part": {}})["part"]
                assert answer["event"]["public"] == one["frame"]["public"] | part
            else:
                assert answer["name"] == "HouseCheated", one["name"]


def test_leaves() -> None:
    given = vectors("leaf")
    for vector, answer in zip(
        given, ask({"do": "leaf", "text": v["out"]["text"]} for v in given), strict=True
    ):
        assert answer == {"value": vector["in"], "hash": vector["out"]["hash"]}


def test_notes() -> None:
    for vector, answer in answered("note"):
        assert answer["ok"] == vector["out"]["ok"], vector["name"]


def test_heads() -> None:
    for log in vectors("heads"):
        given, notes = log["in"], log["out"]
        *leaves, last = given["lines"]
        asked = {"do": "verify", "key": given["key"]}
        in_bundles = ask(
            {**asked, "lines": [*leaves, checkpoint(one["note"]), last], "saved": []}
            for one in notes
        )
        saved = ask({**asked, "lines": given["lines"], "saved": [one["note"]]} for one in notes)
        client = ask({"do": "client_note", **given, "note": one["note"]} for one in notes)
        for one, *answers, opened in zip(notes, in_bundles, saved, client, strict=True):
            faults = [answer["fault"] for answer in answers]
            found = [fault and [fault["check"], fault["line"]] for fault in faults]
            assert found == [one["in_bundle"], one["saved"]], one["name"]
            assert opened == {"received": one["opens"], "saved": one["opens"]}, one["name"]


def test_checkpoints() -> None:
    given = vectors("checkpoint")
    questions = []
    for vector in given:
        out = vector["out"]
        vkeys = [text for text in out.values() if text.count("+") >= 2 and "\n" not in text]
        questions.append({"do": "note", "note": out["note"], "vkeys": vkeys})
    for vector, given_, answer in zip(given, questions, ask(questions), strict=True):
        assert given_["vkeys"]
        assert answer["ok"] == [True] * len(given_["vkeys"])
        assert {name: answer[name] for name in ("origin", "size", "root")} == {
            name: vector["in"][name] for name in ("origin", "size", "root")
        }


def test_canonical_texts() -> None:
    given = vectors("canonical")
    answers = ask({"do": "canonical", "line": v["in"]["text"]} for v in given)
    for vector, answer in zip(given, answers, strict=True):
        assert answer["ok"] == vector["out"]["ok"], vector["name"]
        assert answer.get("name") in (None, "RuleViolation")


def test_audits() -> None:
    for vector, answer in zip(
        vectors("audit"), ask({"do": "verify", **v["in"]} for v in vectors("audit")), strict=True
    ):
        wanted = vector["out"]
        fault = answer["fault"]
        assert (fault and [fault["check"], fault["line"]]) == wanted["fault"]
        counted = {name: answer["remarks"][name] for name in wanted["remarks"]}
        assert counted == wanted["remarks"]


def test_tables() -> None:
    given = vectors("table")
    answers = ask(
        {"do": "verify", "lines": v["out"]["lines"], "key": None, "saved": [], "swaps": True}
        for v in given
    )
    for vector, answer in zip(given, answers, strict=True):
        assert answer["fault"] is None
        hidden = dict(map(tuple, vector["out"]["hidden"]))
        swaps = {swap["version"]: {"j": swap["j"]} for swap in answer["swaps"]}
        assert swaps == {
            version: json.loads(part) for version, part in hidden.items() if '"j"' in part
        }


def test_hashes_match_webcrypto() -> None:
    assert ask([{"do": "hashes", "upto": 200}]) == [{"different": []}]
