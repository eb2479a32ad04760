"""What the webhooks' runner sends, and forgeries of it, at the libraries of PyPI and of npm.

The npm and PyPI packages standardwebhooks know HMAC only. An Ed25519 signature is verified by the
document's examples, with node's crypto and with Python's cryptography.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event
from cloudevents.core.formats.json import JSONFormat
from cryptography.exceptions import InvalidSignature
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from dealer.service.build import open_service
from dealer.service.operations.webhooks import WebhookAdmin
from dealer.webhooks.delivery import SIGNINGS, WebhookSigner
from tests.gateway.rpc_client import eventually
from tests.harness.npm import BUILD, command
from tests.harness.programs import output_of
from tests.harness.service_keys import add_key
from tests.service.tables import shuffled_table
from tests.webhooks.receiver import Receiver

FOLDER = Path(__file__).parent
DOCUMENT = (FOLDER.parents[1] / "dealer/feed/README.md").read_text(encoding="utf-8")
PACKAGES = ("cloudevents", "standardwebhooks")
OTHER_SECRET = bytes(32)

Request = dict[str, Any]
"""`verifier`, `headers` with names in small letters, and `body`."""


def examples(language: str, word: str) -> str:
    """The document's examples in a language that contain a word."""
    blocks = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return "".join(block for block in blocks if word in block)


async def deliveries(folder: Path, signing: str) -> list[Request]:
    """The requests that a webhook got: a whole table, from its opening to its shuffle."""
    async with open_service(f"sqlite:///{folder / 'dealer.db'}") as service, Receiver() as receiver:
        live_table = await shuffled_table(service)
        await add_key(service, "shop", "admin")
        _, verifier = await WebhookAdmin(service.log, who="test").add(
            service.keys,
            receiver.url,
            key="shop",
            types=(),
            signing=signing,
            after="start",
            allow_private=True,
            why="",
        )
        await eventually(lambda: len(receiver.requests) == live_table.committed)
        return [
            {"verifier": verifier, "headers": one.headers, "body": one.body.decode()}
            for one in receiver.requests
        ]


def forged(request: Request, signing: str) -> dict[str, Request]:
    """Requests that differ from a genuine one in what its name says."""
    headers, body, sent = request["headers"], request["body"], int(time.time())
    other = WebhookSigner(SIGNINGS[signing], OTHER_SECRET)
    id, timestamp = headers["webhook-id"], int(headers["webhook-timestamp"])
    by_other = other.sign(id, timestamp, body.encode())
    version, _, signature = headers["webhook-signature"].partition(",")
    changes: dict[str, dict[str, Any]] = {
        "body": {"body": body.replace('"version":1,', '"version":2,')},
        "id": {"webhook-id": f"{id}0"},
        "timestamp": {"webhook-timestamp": str(sent + 1)},
        "key": {"webhook-signature": by_other},
        "no signature": {"webhook-signature": f"{version},"},
        "another version": {"webhook-signature": f"v2,{signature}"},
        # Rightly signed by the key whose verifier is given, but six minutes ago.
        "old": {
            "verifier": other.verifier,
            "webhook-timestamp": str(sent - 360),
            "webhook-signature": other.sign(id, sent - 360, body.encode()),
        },
    }
    assert changes["body"]["body"] != body
    return {
        name: {
            "verifier": changed.pop("verifier", request["verifier"]),
            "body": changed.pop("body", body),
            "headers": headers | changed,
        }
        for name, changed in changes.items()
    }


def by_npm(requests: list[Request]) -> list[dict[str, Any]]:
    program = examples("js", "onRequest") + examples("js", "whpk")
    program += (FOLDER / "webhook_receiver.mjs").read_text(encoding="utf-8")
    node = command(program, packages=PACKAGES)
    return list(json.loads(output_of(*node, input=json.dumps(requests), cwd=BUILD)))


def by_pypi(requests: list[Request]) -> list[dict[str, Any]]:
    names: dict[str, Callable[..., Any]] = {}
    exec(examples("python", "standardwebhooks") + examples("python", "whpk_"), names)
    found = []
    for one in requests:
        check = names["on_request" if one["verifier"].startswith("whsec_") else "verify"]
        body = one["body"].encode()
        message = HTTPMessage({"content-type": one["headers"]["content-type"]}, body)
        event = from_structured_event(message, JSONFormat())
        try:
            signed = {"value": check(one["verifier"], body, one["headers"])}
        except (InvalidSignature, ValueError, WebhookVerificationError) as error:
            signed = {"error": type(error).__name__}
        found.append({"signed": signed, "event": {"value": {"data": event.get_data()}}})
    return found


@pytest.mark.parametrize("receive", [by_npm, by_pypi])
@pytest.mark.parametrize("signing", ["hmac", "ed25519"])
async def test_genuine_requests_are_accepted_and_forged_ones_refused(
    tmp_path: Path, signing: str, receive: Callable[[list[Request]], list[dict[str, Any]]]
) -> None:
    genuine = await deliveries(tmp_path, signing)
    received = receive(genuine)
    assert len(received) == len(genuine) > 50
    for one, found in zip(genuine, received, strict=True):
        event = json.loads(one["body"])
        assert "error" not in found["signed"]
        if signing == "hmac":
            assert found["signed"]["value"] == event
        assert found["event"]["value"]["data"] == event["data"]
    forgeries = forged(genuine[0], signing)
    for name, found in zip(forgeries, receive(list(forgeries.values())), strict=True):
        assert "error" in found["signed"], name


async def test_cloud_events_of_npm(tmp_path: Path) -> None:
    """Every attribute arrives; of those that are missing it refuses two and invents the others."""
    (first, *_) = await deliveries(tmp_path, "hmac")
    event = json.loads(first["body"])
    wrong = [
        {name: value for name, value in event.items() if name != absent}
        for absent in ("source", "type")
    ]
    requests = [first, *(first | {"body": json.dumps(one)} for one in wrong)]
    found, *others = (one["event"] for one in by_npm(requests))
    assert {name: found["value"][name] for name in event} == event
    assert [one["error"] for one in others] == ["TypeError"] * len(wrong)


def test_a_library_that_knows_hmac_only_refuses_an_ed25519_signature() -> None:
    """Also where it is given the public key without its prefix, as the document warns."""
    now, body = int(time.time()), b"{}"
    keys = WebhookSigner(SIGNINGS["ed25519"], OTHER_SECRET)
    headers = {
        "webhook-id": "t/57",
        "webhook-timestamp": str(now),
        "webhook-signature": keys.sign("t/57", now, body),
    }
    with pytest.raises(WebhookVerificationError):
        Webhook(keys.verifier.removeprefix("whpk_")).verify(body, headers)
