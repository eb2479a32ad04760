"""Pages and commands wait for a busy server, and go on automatically."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from dealer.cli.commands import verify
from dealer.errors import HouseUnreachable, UnknownTable
from tests.web.js_verifier import run_module

WEB = Path(__file__).parents[2] / "dealer" / "web"
SERVER_URL = WEB / "server_url.js"
IMPATIENT = {
    SERVER_URL,
    WEB / "audit_worker.js",  # a browser installs it again later
    WEB / "client" / "socket.js",  # which waits by its own policy
}
BUSY = (503, {"Retry-After": "7"}, b"Too many requests.")


@contextmanager
def answering(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[str]:
    """The address of a server with these answers, the last one again and again."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/bundle.jsonl"
        server.shutdown()
        thread.join()


def test_a_command_asks_a_busy_server_again(monkeypatch, capsys) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    with answering(BUSY, (429, {"Retry-After": "1"}, b""), (200, {}, b"bundle")) as address:
        assert verify.download(address) == b"bundle"
    assert slept == [7, 1]
    assert "asking again in 7 seconds" in capsys.readouterr().err
    with answering((503, {"Retry-After": "9999"}, b"No room.")) as address:
        with pytest.raises(HouseUnreachable, match=r"busy .*: No room") as busy:
            verify.download(address)
        assert "no bundle" not in str(busy.value)
    with answering((503, {}, b"No room.")) as address, pytest.raises(HouseUnreachable):
        verify.download(address)
    with answering((404, {}, b"No such table.")) as address, pytest.raises(UnknownTable):
        verify.download(address)
    assert slept == [7, 1]


@pytest.mark.parametrize(
    ("answers", "waited", "status"),
    [
        ([(503, "7"), (429, "2"), (200, None)], [7000, 2000], 200),
        ([(503, None)], [], 503),
        ([(503, "soon")], [], 503),
        ([(503, "9999")], [], 503),
        ([(404, "7")], [], 404),
        ([None], [], None),
    ],
)
def test_a_page_asks_a_busy_server_again(
    answers: list[tuple[int, str | None] | None], waited: list[int], status: int | None
) -> None:
    found = run_module(f"""
        const answers = {json.dumps(answers)};
        const waited = [];
        globalThis.document = {{ baseURI: "http://localhost/" }};
        globalThis.location = new URL("http://localhost/");
        globalThis.setTimeout = (go, milliseconds) => {{ waited.push(milliseconds); go(); }};
        const {{ fetchPatiently }} = await import({json.dumps(SERVER_URL.as_uri())});
        globalThis.fetch = async () => {{
          const next = answers.shift();
          if (next === null) throw new TypeError("no server");
          const headers = next[1] === null ? {{}} : {{ "retry-after": next[1] }};
          return new Response("", {{ status: next[0], headers }});
        }};
        const answer = await fetchPatiently("http://localhost/x");
        console.log(JSON.stringify([waited, answer === null ? null : answer.status]));
    """)
    assert found == [waited, status]


def test_every_page_fetches_patiently() -> None:
    fetching = {path for path in WEB.rglob("*.js") if re.search(r"\bfetch\(", path.read_text())}
    assert fetching == IMPATIENT
