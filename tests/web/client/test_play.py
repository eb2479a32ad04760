"""The JavaScript client with a real server over real sockets: play, lost connections, restarts."""

from __future__ import annotations

import asyncio
import base64
import json
from urllib.request import urlopen

import pytest

import dealer
from dealer.proof.verify import verify
from tests.client.conftest import FAST
from tests.client.test_play import NOTES
from tests.web.client.node_client import JsError, NodeClient
from tests.web.js_verifier import Bundle, compare

pytestmark = pytest.mark.slow

WHOLE_ROUND = """
    const { ada, bob } = its;
    const events = bob.events();
    const opened = await ada.roundOpen({ deck: "54" });
    const k = await ada.shuffle();
    const dealt = await ada.deal(2);
    await bob.until((table) => table.hand.length === 2);
    await ada.burn();
    await ada.cut(10);
    const [random] = await bob.draw(1, { end: "random" });
    const [bottom] = await bob.draw(1, { end: "bottom" });
    await bob.play(random);
    await bob.discard([bottom]);
    await bob.show(bob.hand[0]);
    await bob.show(bob.hand[1], { to: 1 });
    await bob.give(bob.hand[0], { to: 1 });
    await ada.until((table) => table.hand.length === 3);
    const given = [...ada.hand];
    await ada.returnCards(ada.hand[0], { where: "bottom" });
    await ada.returnCards(ada.hand[0]);
    await ada.move("pile:table", { to: "side" });
    await ada.pileTurn("burn");
    const [again] = await ada.pileDraw("side", 1);
    await ada.shuffle({ pile: "discard" });
    await ada.shuffle();
    await ada.until(({ checks }) => checks.find(({ name }) => name === "seal").state === "yes");
    const before = ada.checks;
    await ada.roundClose();
    await ada.close();
    const seen = [];
    for await (const { type } of events) seen.push(type);
    return { opened, k, dealt, random, again, given, before, seen, doubts: bob.doubts,
      closed: bob.closed, after: bob.checks, saved: bob.checkpoints, key: bob.key };
"""


async def test_a_round_with_every_command(clients, real_server):
    table = await clients.sit("ada", "bob", url=real_server.url, seats=3)
    result = await clients.run(WHOLE_ROUND)
    assert (result["opened"], result["k"], result["dealt"]) == (1, 0, 4)
    assert result["random"] == result["again"]
    assert "??" not in result["given"]
    assert result["seen"].count("DeckSealed") == 4
    assert result["seen"].count("EntropyRevealed") == 8
    assert result["seen"][-2:] == ["RoundClosed", "TableClosed"]
    assert result["doubts"] == []
    assert result["closed"]
    states = {check["name"]: check["state"] for check in result["after"]}
    assert set(states.values()) == {"yes"}
    (waiting,) = (check for check in result["before"] if check["state"] != "yes")
    assert waiting["name"] == "round"
    # The verifier finds the saved checkpoints in the bundle.
    address = real_server.url.replace("ws:", "http:").removesuffix("/ws")
    bundle = await asyncio.to_thread(fetch, f"{address}/tables/{table}/bundle.jsonl")
    assert verify(bundle.splitlines(), key=bytes.fromhex(result["key"]), saved=result["saved"]).ok


PASSING = """
    const { ada, bob } = its;
    await ada.roundOpen();
    await ada.shuffle();
    const dealt = await ada.deal(2, { piles: [{ name: "board", count: 3, face: "up" }] });
    await bob.until(({ hand, piles }) => hand.length === 2 && piles.get("board")?.length === 3);
    const [mine, other] = ada.hand;
    await ada.pass(mine, { to: 2 });
    await ada.takeBack();
    const back = ada.hand.join() === `${mine},${other}`;
    await ada.pass([mine], { to: 2 });
    await bob.until(({ piles }) => piles.get("pass:2")?.join() === "??");
    await bob.pass(bob.hand[0], { to: 1 });
    const got = bob.hand.includes(mine);
    const board = bob.piles.get("board").join();
    await bob.move("board", { to: "won-2", all: true });
    const kept = bob.piles.get("won-2").join() === board;
    const drawn = (await ada.pileDraw("won-2", null, { all: true })).join() === board;
    await ada.takeBack();
    await bob.pass(bob.hand[0], { to: 1 });
    await ada.pass();
    await ada.play(ada.hand, { face: "down" });
    await ada.pileTurn("table", null, { all: true });
    await bob.show(null, { all: true });
    const refused = await bob.takeBack().catch(({ reason }) => reason);
    for (const [kind, text] of args.notes) await ada.note(kind, text);
    await bob.until(({ version }) => version === ada.version);
    const { turn, dealerButton, scores, counters, phrase, reaction } = bob.markers;
    await ada.roundClose();
    await ada.close();
    return {
      yes: [back, got, kept, drawn], dealt, refused, key: ada.key, doubts: bob.doubts,
      markers: [turn, dealerButton, [...scores], [...counters], phrase, reaction],
      may: [ada.state.who.pass, ada.state.who.take_back],
    };
"""


async def test_passing_taking_back_whole_piles_and_markers(clients, real_server):
    table = await clients.sit("ada", "bob", url=real_server.url, seats=3)
    result = await clients.run(PASSING, notes=NOTES)
    assert (result["yes"], result["dealt"]) == ([True] * 4, 7)
    assert result["refused"] == "nothing_to_take_back"
    assert result["may"] == ["players", "players"]
    assert result["doubts"] == []
    assert result["markers"] == [
        2, 1, [[1, -5], [2, 0]], [["pot, in $", 120]],
        {"seat": 1, "text": "well-played"}, {"seat": 1, "text": "👏🏽"},
    ]  # fmt: skip
    address = real_server.url.replace("ws:", "http:").removesuffix("/ws")
    bundle = await asyncio.to_thread(fetch, f"{address}/tables/{table}/bundle.jsonl")
    played = Bundle("passing", bundle.decode().splitlines(), result["key"])
    disagreements, (report,) = await asyncio.to_thread(compare, [played])
    assert disagreements == []
    assert report.ok


MOVING = """
    const ada = its.ada = await its.hers.join(await its.hers.open());
    const bob = its.bob = await its.his.join(ada.id);
    const { token } = ada;
    await ada.moveSeat(5, { seat: 2 }); // a request, which clients may ignore
    const asked = [...ada.seats];
    await bob.moveSeat(5);
    await ada.until(({ seats }) => seats.get(5) === "His");
    await ada.roundOpen();
    await ada.shuffle(); // with the bytes of both
    const drawn = await bob.draw(2);
    const same = bob.hand.join() === drawn.join();
    const before = [ada.token === token, bob.seat, same, bob.checks[0].done];
    await ada.moveSeat(2);
    await ada.moveSeat(3);
    await its.hers.close();
    return { asked, before, doubts: [...ada.doubts, ...bob.doubts] };
"""


@pytest.mark.parametrize("resume", [0, 1000])
async def test_a_player_moves_draws_and_comes_back_with_the_same_token(
    clients, real_server, tmp_path, resume
):
    await clients.connect("hers", real_server.url, folder=str(tmp_path))
    await clients.connect("his", real_server.url)
    result = await clients.run(MOVING)
    assert result["asked"] == [[1, "Hers"], [2, "His"]]
    assert result["before"] == [True, 5, True, 1]
    assert result["doubts"] == []
    await real_server.restart(resume=resume)
    await clients.connect("again", real_server.url, folder=str(tmp_path))
    seat, drawn, hand = await clients.run(
        """
        const ada = await its.again.join(its.ada.id);
        const drawn = await ada.draw(1);
        return [ada.seat, drawn, ada.hand];
        """
    )
    assert (seat, hand) == (3, drawn)
    assert hand != ["??"]


def fetch(url):
    with urlopen(url, timeout=20) as answer:
        return answer.read()


async def test_a_closed_round_is_kept_with_all_its_cards_until_the_next(clients, real_server):
    table = await clients.sit("ada", "bob", url=real_server.url)
    await clients.connect("public", real_server.url)
    script = """
        const { ada, bob } = its;
        await ada.roundOpen();
        await ada.shuffle();
        await ada.deal(2);
        const open = bob.state.closedRound;
        await bob.until(({ hand }) => hand.length === 2);
        const held = [ada.hand, bob.hand];
        const onlooker = await its.public.watch(args.table);  // from the middle of the round on
        await ada.roundClose();
        const kept = [];
        for (const one of [bob, onlooker]) {
          await one.until(({ round }) => round === null);
          const { number, stacks } = one.state.closedRound;
          const codes = (name) => stacks[name].map(({ card }) => card);
          kept.push([number, [codes("hand:1"), codes("hand:2")], codes("deck").length,
            Object.values(stacks).flat().every(({ card, shown }) => card !== null && shown)]);
        }
        await ada.roundOpen();
        await bob.until(({ round }) => round === 2);
        return { open, held, kept, next: bob.state.closedRound };
    """
    result = await clients.run(script, table=table)
    assert result["kept"] == [[1, result["held"], 48, True]] * 2
    assert (result["open"], result["next"]) == (None, None)


async def test_javascript_and_python_clients_at_one_table(clients, real_server):
    async with dealer.connect(real_server.url, name="Ada", patience=FAST) as house:
        ada = await house.join(await house.open())
        await clients.connect("bobHouse", real_server.url, name="Bob")
        await clients.run("its.bob = await its.bobHouse.join(args.table)", table=ada.id)
        await ada.round_open()
        await ada.shuffle()
        cards = await clients.run("return its.bob.draw(2)")
        assert len(cards) == 2
        await ada.until(lambda table: len(table.stack("hand:2")) == 2)
        await ada.round_close()
        checks = await clients.run(
            "await its.bob.until((table) => table.round === null); return its.bob.checks"
        )
        assert {check["name"]: check["state"] for check in checks if check["state"] != "yes"} == {}
        assert await clients.run("return its.bob.hand") == []
        assert ada.doubts == []


async def test_a_refusal_is_thrown_with_its_message(clients, real_server):
    await clients.sit("ada", url=real_server.url)
    await clients.run("await its.ada.roundOpen(); await its.ada.shuffle()")
    with pytest.raises(JsError, match="not in that hand") as refused:
        await clients.run("await its.ada.play('As')")
    assert (refused.value.name, refused.value.reason) == ("Refused", "card_not_in_hand")


async def test_a_spectator_sees_no_cards_and_verifies_everything(clients, real_server):
    table = await clients.sit("ada", url=real_server.url)
    await clients.connect("public", real_server.url)
    result = await clients.run(
        """
        const onlooker = await its.public.watch(args.table);
        await its.ada.roundOpen();
        await its.ada.shuffle();
        await its.ada.draw(2);
        await onlooker.until((table) => table.version >= its.ada.version);
        const hand = onlooker.stack("hand:1");
        await its.ada.roundClose();
        await onlooker.until((table) => table.round === null);
        return { hand, checks: onlooker.checks, listed: await its.public.tables() };
        """,
        table=table,
    )
    assert result["hand"] == ["??", "??"]
    states = {check["name"]: check["state"] for check in result["checks"]}
    assert states["entropy"] == "unavailable"
    assert states["round"] == "yes"
    assert result["listed"] == []  # the list is the projector's, which does not run here


@pytest.mark.parametrize(
    ("rules", "options", "opened", "doubts"),
    [
        ({}, {}, "house", ["the house's bytes alone, though the players' bytes"]),
        (
            {"entropy": "house"},
            {},
            "players",
            ["the players' bytes, though the house's bytes alone"],
        ),
        ({"entropy": "house"}, {}, "house", []),
        ({}, {"entropy": "house"}, "house", []),
        ({}, {}, "players", []),
    ],
)
async def test_a_round_with_other_entropy_than_requested_is_doubted(
    clients, proxy, rules, options, opened, doubts
):
    def alter(frame):
        if frame["method"] == "round.open":
            frame["params"]["entropy"] = opened
        return frame

    proxy.alter_request = alter
    await clients.sit("ada", url=proxy.url, **rules)
    result = await clients.run(
        """
        its.reported = [];
        its.ada.on("doubted", (sentence) => its.reported.push(sentence));
        const round = await its.ada.roundOpen(args.options);
        const [{ state }] = its.ada.checks;
        await its.ada.shuffle();
        return { round, state, doubts: its.ada.doubts, reported: its.reported };
        """,
        options=options,
    )
    assert result["round"] == 1
    assert result["doubts"] == [f"Round 1 takes {doubt} were requested." for doubt in doubts]
    assert result["reported"] == result["doubts"]
    honest = "unavailable" if opened == "house" else "waiting"
    assert result["state"] == ("no" if doubts else honest)


async def test_a_house_only_round_is_still_shown_as_one_when_closed(clients, real_server):
    await clients.sit("ada", url=real_server.url)
    checks = await clients.run(
        """
        await its.ada.roundOpen({ entropy: "house" });
        await its.ada.shuffle();
        const open = its.ada.checks;
        await its.ada.roundClose();
        return [open[0], its.ada.checks[0]];
        """
    )
    for check in checks:
        assert check["state"] == "unavailable"
        assert "only the house's random bytes" in check["sentence"]


async def test_the_state_has_everything_that_a_page_draws(clients, real_server):
    await clients.sit("ada", "bob", url=real_server.url, name="Friday", preset="dealer")
    state = await clients.run(
        """
        await its.ada.roundOpen({ entropy: "house" });
        await its.ada.shuffle();
        await its.ada.deal(1);
        await its.ada.burn();
        await its.ada.pileTurn("burn");
        return its.ada.state;
        """
    )
    assert (state["name"], state["seatsMax"], state["rounds"]) == ("Friday", 10, 1)
    assert (state["who"]["draw"], state["who"]["play"]) == ("host", "players")
    assert [player["name"] for player in state["seats"]] == ["Ada", "Bob"]
    stacks = state["round"]["stacks"]
    (mine,), (theirs,) = stacks["hand:1"], stacks["hand:2"]
    assert mine["card"] is not None
    assert mine["id"] == mine["slot"]
    assert (theirs["card"], theirs["shown"], theirs["drawable"]) == (None, False, True)
    (burnt,) = stacks["pile:burn"]
    assert burnt["shown"]
    assert len(stacks["deck"]) == 49
    assert state["round"]["shuffle"] is None


@pytest.mark.parametrize("lost", ["request", "answer"])
async def test_a_lost_connection_loses_and_repeats_nothing(clients, real_server, proxy, lost):
    await clients.connect("adaHouse", proxy.url)
    await clients.connect("bobHouse", real_server.url)
    await clients.run(
        """
        its.ada = await its.adaHouse.join(await its.adaHouse.open());
        its.bob = await its.bobHouse.join(its.ada.id);
        await its.ada.roundOpen();
        await its.ada.shuffle();
        await its.bob.until((bob) => bob.version >= its.ada.version);
        its.states = [];
        its.ada.on("connection", ({ state }) => its.states.push(state));
        """
    )
    proxy.abort_at_draw(lost)
    cards = await clients.run("return its.ada.draw(3)")
    assert proxy.aborted == 1
    assert len(set(cards)) == 3
    assert await clients.run("return its.ada.hand") == cards
    result = await clients.run(
        """
        await its.bob.discard(await its.bob.draw(1));
        await its.ada.until((table) => table.deckCount === 48);
        const versions = its.ada.history.map(({ version }) => version);
        const drawn = its.ada.history.filter(({ type }) => type === "CardDrawn");
        await its.ada.roundClose();
        await its.ada.until((table) => table.connection.state === "connected");
        return { versions, drawn: drawn.length, states: its.states };
        """
    )
    assert result["versions"] == list(range(1, len(result["versions"]) + 1))
    assert result["drawn"] == 4
    assert result["states"][0] == "resuming"
    assert result["states"][-1] == "connected"


async def test_a_player_who_is_host_resumes_with_their_cards(clients, proxy):
    await clients.sit("ada", url=proxy.url)
    await clients.run("await its.ada.roundOpen(); await its.ada.shuffle()")
    lost = proxy.lose_drawn_card()
    cards = await clients.run("return its.ada.draw(2)")
    assert lost
    assert "??" not in cards


async def test_joining_and_opening_across_a_lost_connection(clients, proxy):
    cuts = proxy.cut_at_tokens()
    await clients.sit("ada", url=proxy.url)
    assert cuts == ["host_token", "token"]
    assert await clients.run("return [its.ada.seats, its.ada.version]") == [{"1": "Ada"}, 2]


async def test_clients_resume_after_a_server_restart(clients, real_server):
    await clients.sit("ada", "bob", url=real_server.url)
    before = await clients.run(
        """
        await its.ada.roundOpen();
        await its.ada.shuffle();
        its.states = [];
        its.ada.on("connection", ({ state }) => its.states.push(state));
        return its.ada.draw(2);
        """
    )
    drawing = clients.begin("return Promise.all([1, 2, 3, 4, 5].map(() => its.bob.draw(1)))")
    await real_server.restart()
    drawn = [card for (card,) in await drawing]
    assert await clients.run("return its.bob.hand") == drawn
    assert await clients.run("return its.ada.hand") == before
    await clients.run(
        """
        await its.ada.shuffle();
        await its.ada.roundClose();
        await its.bob.until((table) => table.round === null);
        """
    )
    assert "draining" in await clients.run("return its.states")


async def test_a_restarted_client_returns_to_its_seat(clients, real_server, tmp_path):
    await clients.sit("bob", url=real_server.url)
    await clients.connect("first", real_server.url, folder=str(tmp_path), name="Ada")
    hand = await clients.run(
        """
        const ada = await its.first.join(its.table);
        await its.bob.roundOpen();
        await its.bob.shuffle();
        await ada.until((table) => !table.shuffling);
        const hand = await ada.draw(2);
        await its.bob.until((table) => table.state.round.ahead.length === 2);
        await its.first.close();
        return hand;
        """
    )
    await clients.connect("second", real_server.url, folder=str(tmp_path), name="Ada")
    result = await clients.run(
        """
        const kept = its.second.kept(its.table);
        const ada = await its.second.enter(its.table);
        const { hand, seat } = ada;
        const k = await its.bob.shuffle(); // Ada's digest went ahead: it takes her reveal
        await its.bob.roundClose();
        await ada.until((table) => table.round === null);
        return { hand, seat, kept, k, doubts: ada.doubts, saved: ada.checkpoints.length,
          events: ada.history.length, checks: ada.checks };
        """
    )
    assert result["hand"] == hand
    assert result["seat"] == result["kept"]["seat"] == 2
    assert (result["k"], result["doubts"]) == (1, [])
    assert result["saved"] > 3
    assert {check["name"]: check["state"] for check in result["checks"]}["round"] == "yes"
    kept = [json.loads(file.read_text()) for file in tmp_path.iterdir() if "nonce" in file.name]
    values = [one["value"] for one in kept if isinstance(one, dict)]
    assert len(values) == len(set(values)) == 3


@pytest.mark.parametrize("kept", [["token", "seat", "key"], ["token", "key"]])
async def test_a_record_without_since_brings_the_players_bytes(
    clients, real_server, tmp_path, kept
):
    """Another program may have written it; the token says when the seat was taken."""
    await clients.sit("bob", url=real_server.url)
    await clients.connect("first", real_server.url, folder=str(tmp_path), name="Ada")
    await clients.run("await its.first.join(its.table); await its.first.close();")
    (record,) = (file for file in tmp_path.iterdir() if file.name.endswith("seat"))
    facts = json.loads(record.read_text())
    record.write_text(json.dumps({name: facts[name] for name in kept}))
    await clients.connect("second", real_server.url, folder=str(tmp_path), name="Ada")
    result = await clients.run(
        """
        const ada = await its.second.enter(its.table);
        await its.bob.roundOpen();
        await its.bob.shuffle();
        await ada.sealed();
        return { seat: ada.seat, checks: ada.checks, doubts: ada.doubts };
        """
    )
    states = {check["name"]: check["state"] for check in result["checks"]}
    assert (result["seat"], result["doubts"], states["entropy"]) == (2, [], "yes")


async def test_a_record_with_an_unknown_token_and_no_since_is_refused(
    clients, real_server, tmp_path
):
    table = await clients.sit("bob", url=real_server.url)
    record = tmp_path / f"dealer%2F{table}%2Fseat"
    record.write_text(json.dumps({"token": "other", "seat": 2}))
    await clients.connect("second", real_server.url, folder=str(tmp_path))
    with pytest.raises(JsError, match="no `since`, the version at which") as caught:
        await clients.run("await its.second.enter(its.table)")
    assert caught.value.name == "ConfigurationError"


async def test_enter_without_a_seat_watches_and_join_takes_a_seat(clients, real_server):
    await clients.sit("ada", url=real_server.url)
    await clients.connect("house", real_server.url, name="Cleo")
    seats = await clients.run(
        """
        const cleo = await its.house.enter(its.table);
        const before = cleo.seat;
        const same = (await its.house.join(its.table)) === cleo;
        return [before, same, cleo.seat, cleo.hand];
        """
    )
    assert seats == [None, True, 2, []]


async def test_leaving_frees_the_seat_and_ends_the_events(clients, real_server):
    await clients.sit("ada", "bob", url=real_server.url)
    result = await clients.run(
        """
        const events = its.bob.events();
        await its.bob.leave();
        await its.ada.until((table) => table.seats.size === 1);
        for await (const _ of events); // ends
        const bob = await its.bobHouse.join(its.table);
        await its.ada.leave();
        await bob.until((table) => table.seats.size === 1);
        await bob.roundOpen(); // the host has left, and Bob follows
        await its.ada.until((table) => table.round === 1); // who opened the table still sees it
        return [bob.seat, bob.host, its.ada.seat, its.ada.host];
        """
    )
    assert result == [2, True, None, False]


async def test_the_host_hands_on_its_role_removes_a_player_and_everyone_reads_notes(
    clients, real_server
):
    await clients.sit("ada", "bob", url=real_server.url)
    result = await clients.run(
        """
        await its.ada.transferHost(2);
        await its.bob.until((table) => table.host);
        await its.bob.note("chat", "I deal \u2660");
        await its.bob.vacate(1, "it is late");
        await its.ada.until((table) => table.seat === null);
        const { history, state } = its.bob;
        return [
          history.slice(-3).map(({ type, public: event }) => [type, event]), its.ada.host,
          state.hostSeat, state.seats.map(({ seat }) => seat),
        ];
        """
    )
    assert result == [
        [
            ["HostTransferred", {"seat": 2}],
            ["NoteAdded", {"kind": "chat", "seat": 2, "text": "I deal \u2660"}],
            ["SeatVacated", {"by": "host", "reason": "it is late", "seat": 1}],
        ],
        False,
        2,
        [2],
    ]


async def test_a_newer_connection_takes_over_the_seat(clients, real_server, tmp_path):
    await clients.connect("first", real_server.url, folder=str(tmp_path))
    await clients.run("its.table = await its.first.join(await its.first.open())")
    await clients.connect("second", real_server.url, folder=str(tmp_path))
    waiting = clients.begin("await its.table.until((table) => table.round === 1)")
    await clients.run("await its.second.join(its.table.id)")
    with pytest.raises(JsError, match="newer connection") as ended:
        await waiting
    assert (ended.value.name, ended.value.code) == ("SessionEnded", 4409)
    state = await clients.run("return its.first.connection.state")
    assert state == "away"


async def test_checkpoints_are_cosigned_automatically(clients, proxy, tmp_path):
    sizes = proxy.watch_cosigning()
    await clients.connect("house", proxy.url, folder=str(tmp_path))
    result = await clients.run(
        """
        const table = await its.house.join(await its.house.open());
        const upto = (size) => table.until(() => table.cosigned === size);
        await table.roundOpen();
        await table.shuffle();
        await upto(59);
        await table.roundClose();
        await upto(61);
        await table.close();
        await upto(62);
        const again = await table.cosign(table.checkpoints.at(-1));
        const other = await its.house.join(await its.house.open());
        return [table.id, again, table.cosigner, table.state.seats[0].key, other.cosigner];
        """
    )
    table, again, own, seat, other = result
    assert sizes[:4] == [6, 59, 61, 62]  # C1, what was sealed, the round's end, the table's
    assert again == 62, "again is no fault"
    assert own == seat != other
    kept = json.loads((tmp_path / f"dealer%2F{table}%2Fplayer").read_text())
    assert base64.urlsafe_b64decode(kept["x"] + "=").hex() == own


async def test_after_a_return_only_the_newest_checkpoint_is_cosigned(clients, proxy, tmp_path):
    await clients.connect("hers", proxy.url, folder=str(tmp_path))
    await clients.connect("his", proxy.url, cosigner=False)
    keys = await clients.run(
        """
        its.bob = await its.his.open();
        const ada = await its.hers.join(its.bob.id);
        const keys = [ada.cosigner, its.bob.cosigner];
        await its.hers.close();
        for (const last of [false, true]) {
          await its.bob.roundOpen({ entropy: "house" });
          await its.bob.shuffle();
          its.sealed = its.bob.version;
          await its.bob.deal(1);
          if (!last) await its.bob.roundClose();
        }
        return keys;
        """
    )
    sizes = proxy.watch_cosigning()
    await clients.connect("again", proxy.url, folder=str(tmp_path))
    sealed, key = await clients.run(
        """
        const ada = await its.again.join(its.bob.id);
        await ada.until(() => ada.cosigned === its.sealed);
        await ada.draw(1);
        return [its.sealed, ada.state.seats[0].key];
        """
    )
    assert keys == [key, None]
    assert sizes == [sealed]


@pytest.mark.parametrize("resume", [0, 5])
async def test_a_resume_too_far_behind_gets_a_snapshot(clients, real_server, proxy, resume):
    """The server sends a snapshot with a proof, and the round can still be verified at its end."""
    await real_server.restart(resume=resume)
    await clients.connect("adaHouse", proxy.url)
    await clients.sit("bob", url=real_server.url)
    await clients.run(
        """
        its.ada = await its.adaHouse.join(its.table);
        await its.bob.roundOpen({ entropy: "house" });
        await its.bob.shuffle();
        await its.ada.until((table) => table.version >= its.bob.version);
        its.card = await its.ada.draw(1);
        its.changed = new Promise((resolve) => its.ada.on("changed", resolve));
        """
    )
    held = proxy.hold("table.resume")
    proxy.cut()
    await clients.run("await its.bob.draw(3); await its.bob.shuffle()")
    await held.wait()
    proxy.alter_request = lambda frame: frame
    proxy.cut()
    result = await clients.run(
        """
        await its.ada.until((table) => table.version >= its.bob.version);
        await its.changed;
        const hand = its.ada.hand;
        await its.bob.roundClose();
        await its.ada.until((table) => table.round === null);
        return [hand, its.card, its.ada.checks];
        """
    )
    assert result[0] == result[1]
    assert {check["name"]: check["state"] for check in result[2]}["round"] == "yes"


async def test_host_and_player_too_far_behind_get_two_snapshots(clients, real_server, proxy):
    await real_server.restart(resume=0)
    await clients.connect("adaHouse", proxy.url)
    await clients.connect("bobHouse", real_server.url)
    await clients.run(
        """
        its.ada = await its.adaHouse.join(await its.adaHouse.open());
        its.bob = await its.bobHouse.join(its.ada.id);
        await its.ada.roundOpen({ entropy: "house" });
        await its.ada.shuffle();
        await its.bob.until((table) => table.version >= its.ada.version);
        """
    )
    proxy.cut()
    result = await clients.run(
        """
        await its.bob.draw(3);
        await its.ada.until((table) => table.version >= its.bob.version);
        const drawn = await its.ada.draw(1);
        const { hand } = its.ada;
        await its.ada.roundClose();
        return [drawn, hand];
        """
    )
    assert result[0] == result[1]


async def test_a_long_log_is_resumed_from_the_saved_head(clients, real_server, tmp_path):
    """The client gets a snapshot, and then the events from its saved head to the snapshot."""
    await clients.sit("bob", url=real_server.url)
    await clients.connect("house", real_server.url, folder=str(tmp_path))
    hand = await clients.run(
        """
        const ada = await its.house.join(its.table);
        await its.bob.roundOpen({ entropy: "house" });
        await its.bob.shuffle();
        await ada.until((table) => table.version >= its.bob.version);
        const hand = await ada.draw(2);
        await its.house.close();
        await its.bob.draw(2);
        return hand;
        """
    )
    for limit in (20, 0):  # first the events from the saved head on come, then a proof
        await real_server.restart(resume=limit)
        await clients.connect("house", real_server.url, folder=str(tmp_path))
        result = await clients.run(
            """
            const ada = await its.house.join(its.table);
            const before = ada.hand;
            const drawn = await ada.draw(1);
            const after = ada.hand;
            await its.house.close();
            return { before, drawn, after };
            """
        )
        assert result["before"] == hand
        hand += result["drawn"]
        assert result["after"] == hand


async def test_presence_is_requested_and_notified(clients, real_server):
    await clients.sit("ada", "bob", url=real_server.url)
    here = await clients.run(
        """
        await its.ada.until((table) => table.presence.get(2)?.here);
        const gone = new Promise((resolve) => {
          its.ada.on("presence", (seats) => { if (seats.get(2)?.here === false) resolve(); });
        });
        await its.bobHouse.close();
        await gone;
        return its.ada.presence;
        """
    )
    assert here["1"]["here"]
    assert not here["2"]["here"]


async def test_without_webcrypto_all_but_signatures_are_checked(real_server):
    """A page over plain http has no `crypto.subtle`."""
    async with NodeClient("plain") as clients:
        checks, doubts, cosigner = await clients.run(
            """
            const house = await client.connect(args.url, { name: "Ada" });
            const table = await house.join(await house.open());
            await table.roundOpen();
            await table.shuffle();
            await table.draw(3);
            await table.roundClose();
            return [table.checks, table.doubts, table.cosigner];
            """,
            url=real_server.url,
        )
    states = {check["name"]: check["state"] for check in checks}
    assert states.pop("signatures") == "unavailable"
    assert set(states.values()) == {"yes"}
    assert doubts == []
    assert cosigner is None


async def test_nonces_of_one_player_are_never_used_twice(clients, real_server, tmp_path):
    await clients.connect("house", real_server.url, folder=str(tmp_path))
    nonces = await clients.run(
        """
        const table = await its.house.join(await its.house.open());
        for (let round = 0; round < 2; round++) {
          await table.roundOpen();
          for (let k = 0; k < 3; k++) await table.shuffle();
          await table.roundClose();
        }
        const revealed = table.history.filter(({ type }) => type === "EntropyRevealed");
        return revealed.map((event) => event.public.nonce);
        """
    )
    assert len(nonces) == len(set(nonces)) == 6


async def test_a_repeated_random_number_is_never_committed(clients, real_server, tmp_path):
    for name in ("first", "second"):  # both clients use the same store
        await clients.connect(name, real_server.url, folder=str(tmp_path))
    promised, faults = await clients.run(
        """
        const draw = crypto.getRandomValues.bind(crypto);
        const stuck = (array) => (array.length === 32 ? array.fill(7) : draw(array));
        Object.defineProperty(crypto, "getRandomValues", { value: stuck, configurable: true });
        const table = await its.first.join(await its.first.open());
        await table.roundOpen();
        const described = ({ name, message }) => [name, message];
        const stop = (one) => one.until(() => false).catch(described);
        const fault = stop(table);
        table.shuffle().catch(() => {}); // when it is sealed, bytes for the next one are drawn
        const faults = [await fault];
        await its.first.close();
        faults.push(await its.second.join(table.id).then(stop, described));
        const promised = table.history.filter(({ type }) => type === "EntropyCommitted");
        return [promised.length, faults];
        """
    )
    assert promised == 1
    for name, sentence in faults:
        assert name == "ConfigurationError"
        assert "twice" in sentence


async def test_an_earlier_version_as_this_player_saw_it(clients, real_server):
    await clients.sit("ada", "bob", url=real_server.url, seats=2)
    result = await clients.run("""
        const { ada, bob } = its;
        const before = ada.shuffled;
        await ada.roundOpen();
        const opened = ada.shuffled;
        await ada.shuffle();
        const waited = [before, opened, ada.shuffled];
        const drawn = await ada.draw(2);
        const { state } = ada;
        await ada.play(drawn[0]);
        const past = await ada.stateAt(state.version);
        const hers = (await bob.stateAt(state.version)).round.stacks["hand:1"];
        const refused = await ada.stateAt(ada.version + 1).catch(({ reason }) => reason);
        return { waited, state, past, drawn, hers, refused, first: await ada.stateAt(1) };
    """)
    assert result["waited"] == [False, False, True]
    past = result["past"]
    assert [card["card"] for card in past["round"]["stacks"]["hand:1"]] == result["drawn"]
    for state in (past, result["state"]):  # digests for the next shuffle, in the order they came
        state["round"]["ahead"].sort()
    assert past == result["state"]
    assert [card["card"] for card in result["hers"]] == [None, None]
    assert result["refused"] == "bad_request"
    assert (result["first"]["version"], result["first"]["round"]) == (1, None)


async def test_commands_have_their_old_names(clients, real_server):
    await clients.sit("ada", url=real_server.url, seats=2)
    result = await clients.run("""
      const { ada } = its;
      await ada.roundOpen();
      await ada.shuffle();
      await ada.deal(3);
      await ada.change("hand.play", { cards: ada.hand.slice(0, 1) });
      await ada.pileMove("table", { to: "side", all: true });
      await ada.return(ada.hand[0], { where: "bottom" });
      await ada.handReturn(ada.hand[0]);
      const { round } = ada.state;
      return [ada.piles.get("side").length, ada.hand, ada.deckCount, round.k, round.shuffleIndex];
    """)
    assert result == [1, [], 51, 1, 1]
