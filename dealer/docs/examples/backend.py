"""A backend with logins: its users get seats at tables, and it stores every event of them.

KEY is a service key with the rights `open`, `seat` and `read`: `KEY=dk_… python backend.py`.
"""

import asyncio
import hashlib
import json
import os
import secrets
import sqlite3

import httpx
import uvicorn
from fastapi import Body, Cookie, FastAPI, HTTPException, Response

HOUSE, HEADERS = "http://127.0.0.1:8080", {"Authorization": f"Bearer {os.environ['KEY']}"}
house = httpx.AsyncClient(base_url=HOUSE, headers=HEADERS, timeout=60)
store = sqlite3.connect("backend.db", isolation_level=None)
event = "position TEXT, table_id TEXT, version INTEGER, object TEXT, UNIQUE (table_id, version)"
store.execute("CREATE TABLE IF NOT EXISTS user (name TEXT PRIMARY KEY, salt BLOB, digest BLOB)")
store.execute(f"CREATE TABLE IF NOT EXISTS event ({event})")
sessions: dict[str, str] = {}  # the user's name by the cookie
app = FastAPI()


async def call(method, **params):
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = (await house.post("/rpc", json=request)).raise_for_status().json()
    if "error" in answer:
        raise HTTPException(409, answer["error"]["message"])
    return answer["result"]


async def follow():
    """Store the feed, from the newest stored event on, also after a failure of either side."""
    while True:
        newest = store.execute("SELECT position FROM event ORDER BY rowid DESC").fetchone()
        params = {"after": newest[0] if newest else "start"}
        try:
            async with house.stream("GET", "/feed", params=params) as answer:
                async for line in answer.raise_for_status().aiter_lines():
                    if one := line.strip() and json.loads(line):
                        row = one["position"], one["table"], one.get("version"), line
                        store.execute("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?)", row)
        except httpx.HTTPError as error:
            print("feed:", error, flush=True)
        await asyncio.sleep(1)


async def serve():
    server = uvicorn.Server(uvicorn.Config(app, port=8081))
    await asyncio.gather(server.serve(), follow())


@app.post("/login", status_code=204)
async def login(answer: Response, name: str = Body(), password: str = Body()):
    """Log in; a new name is registered with the password."""
    known = store.execute("SELECT salt, digest FROM user WHERE name = ?", [name]).fetchone()
    salt = known[0] if known else secrets.token_bytes(16)
    digest = hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)
    if known and not secrets.compare_digest(known[1], digest):
        raise HTTPException(401, "wrong password")
    store.execute("INSERT OR IGNORE INTO user VALUES (?, ?, ?)", (name, salt, digest))
    sessions[session := secrets.token_urlsafe()] = name
    answer.set_cookie("session", session, httponly=True, samesite="lax")


@app.post("/matches/{match}")
async def take_seat(match: str, session: str = Cookie()):
    """A link with which this user takes one of the two seats of the match's table."""
    if (user := sessions.get(session)) is None:
        raise HTTPException(401, "log in first")
    table = (await call("table.open", ref=match, seats=2, rules={"join": "invite"}))["table"]
    ticket = (await call("seat.ticket", table=table, name=user, subject=user))["ticket"]
    return {"link": f"{HOUSE}/tables/{table}#ticket={ticket}"}


asyncio.run(serve())
