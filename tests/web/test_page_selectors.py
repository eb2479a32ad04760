"""What pages read from a table: who played a card, whether a trick is complete, what notes say."""

from __future__ import annotations

import json

import pytest

from dealer.languages.language import languages
from tests.web.js_verifier import FILE, run_module

HISTORY = (FILE.parent / "table" / "history.js").as_uri()
SELECTORS = (FILE.parent / "table" / "selectors.js").as_uri()
MARKERS = (FILE.parent / "client" / "markers.js").as_uri()


def test_a_card_of_a_trick_stays_that_of_the_first_player_who_put_it_there() -> None:
    found = run_module(f"""
        import {{ playedBy }} from {json.dumps(HISTORY)};
        const moved = (at, slot, from, to) =>
          ({{ type: "CardMoved", at, public: {{ slot, from, to }} }});
        const table = {{
          state: {{ seats: [
            {{ seat: 1, name: "Ann", since: 0 }}, {{ seat: 2, name: "Zoe", since: 9 }},
          ] }},
          history: [
            {{ type: "SeatTaken", version: 1, at: 0, public: {{ seat: 2, name: "Tom" }} }},
            moved(1, 4, "hand:1", "pile:table"), moved(2, 5, "deck", "pile:table"),
            moved(3, 6, "hand:2", "pile:table"), moved(3, 7, "hand:2", "pile:x"),
            moved(4, 6, "pile:table", "hand:1"), moved(4, 7, "pile:x", "hand:1"),
          ],
        }};
        const all = () => [4, 5, 6, 7, null].map((slot) => {{
          const {{ seat, at, name }} = playedBy(table, slot) ?? {{}};
          return seat === undefined ? null : [seat, at, name];
        }});
        const before = all();
        table.history.push(
          moved(5, 4, "pile:table", "pile:won:2"),
          moved(6, 6, "hand:1", "pile:table"), moved(6, 7, "hand:1", "pile:x"),
          {{ type: "CardDrawn", at: 7, public: {{ slot: 4, from: "pile:won:2", seat: 2 }} }});
        const after = all();
        table.history.push({{ type: "RoundOpened", at: 8, public: {{}} }});
        console.log(JSON.stringify([before, after, all()]));
    """)
    assert found == [
        [[1, 1, "Ann"], None, [2, 3, "Tom"], None, None],
        [None, None, [2, 3, "Tom"], [1, 6, "Ann"], None],
        [None] * 5,
    ]


def test_a_trick_has_one_card_of_each_seated_player() -> None:
    found = run_module(f"""
        import {{ isTrick, nextSeat }} from {json.dumps(SELECTORS)};
        const trick = (seats, ...players) => isTrick({{
          history: players.map((seat, slot) => (
            {{ type: "CardMoved", at: slot, public:
              {{ slot, from: seat === 0 ? "deck" : `hand:${{seat}}`, to: "pile:table" }} }})),
          state: {{
            seats: seats.map((seat) => ({{ seat, since: 0 }})),
            round: {{ stacks: {{ "pile:table": players.map((_, slot) => ({{ slot }})) }} }},
          }},
        }});
        const two = {{ state: {{ seats: [{{ seat: 2 }}, {{ seat: 5 }}] }} }};
        const next = (seat) => nextSeat(two, seat);
        console.log(JSON.stringify([
          trick([1, 3], 3, 1), trick([1, 3], 3), trick([1, 3], 3, 3), trick([1, 3], 0, 1),
          trick([1, 3], 1, 3, 1), trick([1], 1), next(2), next(5),
        ]));
    """)
    assert found == [True, False, False, False, False, False, 5, 2]


def test_markers_read_each_event_once_and_keep_earlier_values() -> None:
    found = run_module(f"""
        import {{ markersFold }} from {json.dumps(MARKERS)};
        let reads = 0;
        const note = (kind, text, seat = 1) => ({{
          get type() {{ reads += 1; return "NoteAdded"; }}, public: {{ seat, kind, text }},
        }});
        const fold = markersFold();
        const events = [note("turn", "2"), note("score", "1:-5"), note("turn", "x")];
        const first = fold.of(events);
        const same = fold.of(events) === first;
        events.push(note("score", "2:7"), note("counter", "pot:3"), note("phrase", "yes", 2));
        events.push(note("clock", "90"), note("clock", "1.5"));
        const second = fold.of(events);
        const shown = ({{ scores, counters, ...others }}) =>
          ({{ ...others, scores: [...scores], counters: [...counters] }});
        console.log(JSON.stringify([reads, same, shown(first), shown(second)]));
    """)
    empty = {"dealerButton": None, "reaction": None}
    first = {"turn": 2, "clock": 0, "phrase": None, "scores": [[1, -5]], "counters": []}
    second = {"turn": 2, "clock": 90, "phrase": {"seat": 2, "text": "yes"}}
    second |= {"scores": [[1, -5], [2, 7]], "counters": [["pot", 3]]}
    assert found == [8, True, empty | first, empty | second]


@pytest.mark.parametrize("tag", sorted(languages()))
def test_the_audit_page_says_that_a_player_may_sit_down_again(tag: str) -> None:
    """In words of the language, and other notes with their kind."""
    readmitted, noted = run_module(f"""
        const documentElement = {{ lang: {json.dumps(tag)}, dataset: {{}} }};
        globalThis.document = {{ documentElement, getElementById: () => null }};
        const {{ sentenceOf }} = await import("./dealer/web/audit/sentences.js");
        const moments = ["readmit", "other"].map((kind) => ({{
          type: "NoteAdded", public: {{ seat: 0, kind, text: "Bob" }}, shuffle: null, swap: null,
          seats: new Map(), bots: new Set(),
        }}));
        console.log(JSON.stringify([0, 1].map((at) => sentenceOf({{ moments }}, at, null))));
    """)
    assert "Bob" in readmitted
    assert "readmit" not in readmitted
    assert "other" in noted
