"""What the table page takes for an invitation."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.web.second import FILE, node

SITTING = (FILE.parent / "table" / "sitting.js").as_uri()
INVITE = "invite.0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "invite"),
    [
        (f"#invite={INVITE}", INVITE),
        (f"http://house/tables/1#invite={INVITE}", INVITE),
        (INVITE, INVITE),
        ("#round=1&step=17&k=0", None),
        ("http://house/tables/0123456789abcdef", None),
        ("short", None),
        ("#", None),
    ],
)
def test_only_an_invitation_is_one(text: str, invite: str | None) -> None:
    program = f"""
        import {{ inviteIn }} from {json.dumps(SITTING)};
        console.log(JSON.stringify(inviteIn({json.dumps(text)})));
    """
    done = subprocess.run(
        [node(), "--input-type=module", "--eval", program],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == invite
