"""Signatures and bodies, checked with the libraries of their specifications."""

from __future__ import annotations

import json
import time
from base64 import b64decode

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event
from cloudevents.core.formats.json import JSONFormat
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from dealer.feed.pages import Entry
from dealer.webhooks.delivery import CONTENT_TYPE, ED25519, HMAC, WebhookSigner, body_of, id_of

SECRET = bytes(range(32))
TABLE = bytes.fromhex("0199f3c20c7b7d0e8a35b1c4d2e6f708")
TEXT = '{"position":"00000000-7-0","table":"0199f3c20c7b7d0e8a35b1c4d2e6f708","ref":"ü"}'
ENTRY = Entry("00000000-7-0", TEXT, TABLE, 57, "CardDrawn", 1_760_000_000_123)


def test_a_shared_secret() -> None:
    body, now = b'{"a":1}', int(time.time())
    with_secret = WebhookSigner(HMAC, SECRET)
    assert with_secret.verifier.startswith("whsec_")
    headers = {
        "webhook-id": "t/57",
        "webhook-timestamp": str(now),
        "webhook-signature": with_secret.sign("t/57", now, body),
    }
    webhook = Webhook(with_secret.verifier)
    assert webhook.verify(body, headers) == {"a": 1}
    for name, value in (("webhook-id", "t/58"), ("webhook-timestamp", str(now - 1))):
        with pytest.raises(WebhookVerificationError):
            webhook.verify(body, headers | {name: value})
    with pytest.raises(WebhookVerificationError):
        webhook.verify(body + b" ", headers)


def test_the_vector_of_the_specification() -> None:
    secret = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    found = WebhookSigner(HMAC, secret).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_key_pair() -> None:
    with_key = WebhookSigner(ED25519, SECRET)
    public = Ed25519PublicKey.from_public_bytes(b64decode(with_key.verifier.removeprefix("whpk_")))
    kind, _, text = with_key.sign("t/57", 1, b"{}").partition(",")
    assert kind == "v1a"
    public.verify(b64decode(text), b"t/57.1.{}")
    with pytest.raises(InvalidSignature):
        public.verify(b64decode(text), b"t/57.2.{}")


def test_an_unknown_signing() -> None:
    with pytest.raises(ValueError, match="v2"):
        WebhookSigner("v2", SECRET)


def test_a_cloud_event() -> None:
    body = body_of(ENTRY, house="cards.example.org")
    message = HTTPMessage({"content-type": CONTENT_TYPE}, body)
    event = from_structured_event(message, JSONFormat())
    table = TABLE.hex()
    assert event.get_id() == id_of(ENTRY) == f"{table}/57"
    assert event.get_source() == f"https://cards.example.org/tables/{table}"
    assert event.get_type() == "dealer.CardDrawn"
    assert event.get_subject() == table
    time_ = event.get_time()
    assert time_ is not None
    assert round(time_.timestamp() * 1000) == ENTRY.at
    assert event.get_data() == json.loads(TEXT)


def test_what_was_archived_has_an_id_of_its_own() -> None:
    skipped = ENTRY._replace(type="", at=0)
    event = json.loads(body_of(skipped, house='a"b'))
    assert event["type"] == "dealer.Skipped"
    assert event["id"] == f"{TABLE.hex()}/57-skipped"
    assert event["source"].startswith('https://a"b/')
    assert "time" not in event
