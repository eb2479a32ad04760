"""What only the JavaScript client has, with a real server over real sockets.

`tests/client/test_scenes.py` has the scenes of both clients.
"""

from __future__ import annotations

import asyncio
import json
from urllib.request import urlopen

import pytest

import dealer
from dealer.proof.verify import verify
from tests.client.conftest import FAST
from tests.web.client.node_client import JsError, NodeClient
from tests.web.js_verifier import Bundle, compare

pytestmark = pytest.mark.slow


async def test_the_checks_of_a_round_and_its_bundle(clients, real_server):
    """Both verifiers find the checkpoints that the client saved in the bundle."""
    table = await clients.sit("ada", "bob", url=real_server.url)
    result = await clients.run(
        """
        const { ada, bob } = its;
        await ada.roundOpen();
        await ada.shuffle();
        await ada.deal(1);
        await ada.pass(ada.hand[0], { to: 2 });
        await ada.takeBack();
        await bob.until(({ version }) => version === ada.version);
        await bob.until(({ checks }) => checks.find(({ name }) => name === "seal").state === "yes");
        const waiting = bob.checks.filter(({ state }) => state !== "yes").map(({ name }) => name);
        const { pass, take_back } = ada.state.who;
        await ada.roundClose();
        await bob.until(({ round }) => round === null);
        return { waiting, who: [pass, take_back], saved: bob.checkpoints, key: bob.key };
        """
    )
    assert result["waiting"] == ["round"]
    assert result["who"] == ["players", "players"]
    address = real_server.url.replace("ws:", "http:").removesuffix("/ws")
    with await asyncio.to_thread(urlopen, f"{address}/tables/{table}/bundle.jsonl") as answer:
        bundle = answer.read()
    assert verify(bundle.splitlines(), key=bytes.fromhex(result["key"]), saved=result["saved"]).ok
    played = Bundle("played", bundle.decode().splitlines(), result["key"])
    disagreements, (report,) = await asyncio.to_thread(compare, [played])
    assert disagreements == []
    assert report.ok


async def test_waiting_ends_after_its_timeout(clients, real_server):
    await clients.sit("ada", url=real_server.url)
    result = await clients.run(
        """
        const { ada } = its;
        const before = ada.version;
        const said = await ada.until(({ version }) => version < before, { timeout: 10 })
          .catch(({ name, message }) => `${name}: ${message}`);
        const waiting = ada.until(({ round }) => round === 1, { timeout: 20_000 });
        await ada.roundOpen();
        return { said, round: (await waiting).round };
        """
    )
    assert result["said"].startswith("TimeoutError: The condition was not true within 10 ms. ")
    assert result["round"] == 1


async def test_a_doubt_is_reported_once_and_shown_as_a_failed_check(clients, proxy):
    def alter(frame):
        if frame["method"] == "round.open":
            frame["params"]["entropy"] = "house"
        return frame

    proxy.alter_request = alter
    await clients.sit("ada", url=proxy.url)
    reported, doubts, state = await clients.run(
        """
        const reported = [];
        its.ada.on("doubted", (sentence) => reported.push(sentence));
        await its.ada.roundOpen();
        await its.ada.shuffle();
        return [reported, its.ada.doubts, its.ada.checks[0].state];
        """
    )
    assert len(doubts) == 1
    assert (reported, state) == (doubts, "no")


async def test_states_of_the_connection_and_a_history_without_a_gap(clients, real_server, proxy):
    await clients.sit("ada", url=proxy.url)
    await clients.run(
        """
        its.states = [];
        its.ada.on("connection", ({ state }) => its.states.push(state));
        await its.ada.roundOpen();
        await its.ada.shuffle();
        """
    )
    proxy.abort_at_draw("answer")
    await clients.run("await its.ada.draw(3)")
    states, versions = await clients.run(
        """
        await its.ada.until((table) => table.connection.state === "connected");
        return [its.states, its.ada.history.map(({ version }) => version)];
        """
    )
    assert (states[0], states[-1]) == ("resuming", "connected")
    assert versions == list(range(1, len(versions) + 1))
    await real_server.restart()
    await clients.run("await its.ada.draw(1)")
    assert "draining" in await clients.run("return its.states")


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
        const kept = its.second.kept(its.table);
        const ada = await its.second.enter(its.table);
        await its.bob.roundOpen();
        await its.bob.shuffle();
        await ada.sealed();
        return { kept, seat: ada.seat, checks: ada.checks, doubts: ada.doubts };
        """
    )
    states = {check["name"]: check["state"] for check in result["checks"]}
    assert (result["seat"], result["doubts"], states["entropy"]) == (2, [], "yes")
    assert result["kept"]["seat"] == 2


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


@pytest.mark.parametrize("way", ["watch", "enter", "join"])
async def test_who_comes_late_knows_what_notes_said_before(clients, real_server, way):
    """Whose turn it is, its clock, the button, scores and counters."""
    await clients.sit("ada", url=real_server.url)
    await clients.connect("late", real_server.url, name="Cleo")
    markers, versions = await clients.run(
        """
        const { ada } = its;
        for (const [kind, text] of [["turn", "1"], ["clock", "30"], ["dealer_button", "1"],
          ["score", "1:7"], ["score", "1:-15"], ["counter", "pot:120"]]) {
          await ada.note(kind, text);
        }
        const table = await its.late[args.way](its.table);
        const { turn, clock, dealerButton, scores, counters } = table.markers;
        const versions = table.history.map(({ version }) => version);
        return [[turn, clock, dealerButton, [...scores], [...counters]], versions];
        """,
        way=way,
    )
    assert markers == [1, 30, 1, [[1, -15]], [["pot", 120]]]
    assert versions == list(range(1, len(versions) + 1))


@pytest.mark.parametrize("watched", [False, True])
async def test_own_bytes_are_no_check_of_a_shuffle_before_the_player_came(
    clients, real_server, watched
):
    await clients.sit("ada", url=real_server.url)
    await clients.connect("late", real_server.url, name="Cleo")
    own = await clients.run(
        """
        await its.ada.roundOpen();
        await its.ada.shuffle();
        if (args.watched) await its.late.enter(its.table);
        const table = await its.late.join(its.table);
        return table.checks[0];
        """,
        watched=watched,
    )
    assert (own["name"], own["state"], own["because"]) == ("entropy", "unavailable", "not_seen")


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
