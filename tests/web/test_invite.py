"""Texts in which the table page finds an invitation."""

from __future__ import annotations

import json

import pytest

from tests.web.js_verifier import FILE, run_module

JOIN_FORM = (FILE.parent / "table" / "join_form.js").as_uri()
INVITE = "invite.0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "invite"),
    [
        (f"#invite={INVITE}", INVITE),
        (f"http://house/tables/1#invite={INVITE}", INVITE),
        (INVITE, INVITE),
        (f"http://house/tables/1#invite={INVITE}.", INVITE),
        (f"#by=A&invite={INVITE}%E2%80%8B)", INVITE),
        (f"#invite={INVITE}>,", INVITE),
        ("#round=1&step=17&k=0", None),
        ("http://house/tables/0123456789abcdef", None),
        ("short", None),
        ("#", None),
    ],
)
def test_which_texts_hold_an_invitation(text: str, invite: str | None) -> None:
    program = f"""
        import {{ inviteIn }} from {json.dumps(JOIN_FORM)};
        console.log(JSON.stringify(inviteIn({json.dumps(text)})));
    """
    assert run_module(program) == invite
