"""The JavaScript client under the names of the Python client, so that both play one scene.

Each call runs in node and returns with what all tables of that process show, so that attributes
are read without waiting, as in Python.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import dealer
from dealer.client import RemoteTable
from tests.web.client.node_client import JsError, NodeClient

PRELUDE = """
    its.tables = [];
    its.streams = [];
    its.number = (table) => {
      const number = its.tables.indexOf(table);
      return number < 0 ? its.tables.push(table) - 1 : number;
    };
    const mapsAsObjects = (_, one) => (one instanceof Map ? Object.fromEntries(one) : one);
    const said = (one) => one && [one.seat, one.text];
    its.show = (table) => {
      const { version, seat, seats, round, shuffling, shuffled, hand, deckCount, piles, closed,
        checks, checkpoints, cosigned, doubts, practice, token, state, markers } = table;
      const { dealerButton, phrase, reaction, ...others } = markers;
      const shown = { version, seat, seats, round, shuffling, shuffled, hand,
        deck_count: deckCount, piles, closed, checks, checkpoints, cosigned, doubts, practice,
        token, state,
        markers: { ...others, dealer_button: dealerButton, phrase: said(phrase),
          reaction: said(reaction) },
      };
      return JSON.stringify(shown, mapsAsObjects);
    };
    its.shown = (value = null) => ({ value, tables: its.tables.map(its.show) });
"""


class JsHouses(NodeClient):
    """A node process of JavaScript clients, and what their tables showed last."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[int, JsTable] = {}
        self.texts: list[str] = []
        self.shown: list[dict[str, Any]] = []
        self._houses = 0

    async def __aenter__(self) -> JsHouses:
        await super().__aenter__()
        await self.run(PRELUDE)
        return self

    def house(self, url: str, *, store: Any = None, **options: Any) -> JsHouse:
        """A client that is not yet connected; its options are those of `dealer.connect`."""
        self._houses += 1
        folder = {} if store is None else {"folder": str(store)}
        return JsHouse(self, f"house{self._houses}", url, {"name": None} | options | folder)

    async def call(self, js: str, **args: Any) -> Any:
        """Run `js`, which returns `its.shown(value)`; returns the value."""
        try:
            result = await self.run(js, **args)
        except JsError as error:
            self._keep(await self.run("return its.shown()"))
            raise raised(error) from error
        self._keep(result)
        return result["value"]

    def _keep(self, result: dict[str, Any]) -> None:
        self.texts = result["tables"]
        self.shown = [json.loads(text) for text in self.texts]


class JsHouse:
    """A House of the JavaScript client."""

    def __init__(self, node: JsHouses, name: str, url: str, options: dict[str, Any]) -> None:
        self._node = node
        self._name = name
        self._url = url
        self._options = options

    async def __aenter__(self) -> JsHouse:
        await self._node.connect(self._name, self._url, **self._options)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._node.run(f"await its.{self._name}.close()")

    async def open(self, **options: Any) -> JsTable:
        return await self._table("open", {camel_case(key): options[key] for key in options})

    async def join(self, table: JsTable | str, **options: Any) -> JsTable:
        return await self._table("join", table if isinstance(table, str) else table.id, options)

    async def resume(self, table: str, *, token: str) -> JsTable:
        return await self._table("enter", table, {"token": token})

    async def watch(self, table: str, **options: Any) -> JsTable:
        return await self._table("watch", table, options)

    async def tables(self) -> list[Any]:
        listed: list[Any] = await self._node.run(f"return its.{self._name}.tables()")
        return listed

    async def _table(self, method: str, *arguments: Any) -> JsTable:
        js = f"""
            const table = await its.{self._name}.{method}(...args.given);
            return its.shown([its.number(table), table.id]);
        """
        number, id_ = await self._node.call(js, given=arguments)
        return self._node.tables.setdefault(number, JsTable(self._node, number, id_))


class JsTable:
    """A RemoteTable of the JavaScript client; its commands are those of the Python client."""

    def __init__(self, node: JsHouses, number: int, id_: str) -> None:
        self.id = id_
        self._node = node
        self._number = number

    @property
    def _shown(self) -> dict[str, Any]:
        return self._node.shown[self._number]

    @property
    def seats(self) -> dict[int, str]:
        return {int(seat): name for seat, name in self._shown["seats"].items()}

    @property
    def markers(self) -> SimpleNamespace:
        shown = self._shown["markers"]
        markers = SimpleNamespace(**shown)
        markers.scores = {int(seat): score for seat, score in shown["scores"].items()}
        markers.phrase, markers.reaction = (
            said and tuple(said) for said in (shown["phrase"], shown["reaction"])
        )
        return markers

    @property
    def state(self) -> SimpleNamespace:
        state = self._shown["state"]
        seats = {
            player["seat"]: SimpleNamespace(key=player["key"] and bytes.fromhex(player["key"]))
            for player in state["seats"]
        }
        round_ = state["round"] and SimpleNamespace(
            k=state["round"]["shuffleIndex"], withheld=state["round"]["withheld"]
        )
        return SimpleNamespace(host_seat=state["hostSeat"], seats=seats, round=round_)

    def stack(self, name: str) -> list[str]:
        round_ = self._shown["state"]["round"]
        return [card["card"] or "??" for card in round_["stacks"].get(name, ())] if round_ else []

    def events(self) -> AsyncIterator[tuple[int, int, Any]]:
        js = f"return its.streams.push(its.tables[{self._number}].events()) - 1"
        return self._iterate(self._node.begin(js))

    async def _iterate(self, stream: Any) -> AsyncIterator[tuple[int, int, Any]]:
        js = """
            const { done, value } = await its.streams[args.stream].next();
            return its.shown(done ? null : value);
        """
        while event := await self._node.call(js, stream=await stream):
            yield event["at"], event["version"], type(event["type"], (), {})()

    async def until(self, predicate: Callable[[Any], bool]) -> JsTable:
        js = """
            const table = its.tables[args.number];
            await table.until(() => its.show(table) !== args.seen);
            return its.shown();
        """
        await self._node.call("return its.shown()")
        while not predicate(self):
            await self._node.call(js, number=self._number, seen=self._node.texts[self._number])
        return self

    def __getattr__(self, name: str) -> Any:
        if name in self._shown:
            return self._shown[name]
        parameters = list(inspect.signature(getattr(RemoteTable, name)).parameters.values())[1:]
        ordered = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        js = f"""
            const given = args.ordered.map((one) => one ?? undefined);
            const table = its.tables[{self._number}];
            return its.shown(await table.{camel_case(name)}(...given, ...args.options));
        """

        async def method(*arguments: Any, **options: Any) -> Any:
            given = dict(zip(ordered, arguments, strict=False)) | options
            positional = [given.pop(parameter, None) for parameter in ordered]
            renamed = {camel_case("all" if key == "whole" else key): given[key] for key in given}
            return await self._node.call(
                js, ordered=positional, options=[renamed] if renamed else []
            )

        return method


def camel_case(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(map(str.capitalize, rest))


def raised(error: JsError) -> Exception:
    """The exception of the Python client for what the JavaScript client threw."""
    if error.name == "SessionEnded":
        return dealer.SessionEnded(error.message, code=error.code or 0)
    kind: type[Exception] = getattr(dealer, error.name)
    if kind is dealer.Refused:
        kinds = (getattr(dealer, name) for name in dealer.errors.__all__)
        refusals = [one for one in kinds if issubclass(one, dealer.Refused)]
        kind = next(one for one in refusals if one.reason == error.reason)
    return kind(error.message)
