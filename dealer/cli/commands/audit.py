"""Check a game: `dealer audit`, `dealer history` and `dealer state`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from dealer.cli import options
from dealer.cli.commands import verify
from dealer.cli.options import given
from dealer.cli.output import echo, echo_err, format_time, safe_text, say_json
from dealer.errors import ConfigurationError, DatabaseDamaged, DealerError, amount
from dealer.game.cards import UNKNOWN
from dealer.game.stacks import DECK, seat_of
from dealer.languages.language import DEFAULT, language_of, languages
from dealer.proof.canonical import one_line

if TYPE_CHECKING:
    from dealer.analysis.open_bundle import PastTable, Viewer
    from dealer.history.sentences import Sentence
    from dealer.proof.verify import Report

_HEADING = f"{'step':>10} {'i':>4} {'j':>4}  {'words of the tape':<18} cards"


@options.command(
    help="""Print what happened at a table, recompute every shuffle, and report whether it was fair.

    It prints for each step of a shuffle the two places, the random 16-bit words that gave the
    second place (all but the last were rejected), and the two cards that were exchanged. It also
    prints every draw, every change of a hand, and the result of each check of the verifier. Cards
    of a round that is not closed yet are shown as ??. The table's events in the database are
    checked, too, with the house key also the hidden parts of an open round; the read models (swaps,
    hands and so on) are not: `dealer rebuild` compares those. The exit code is 1 if a check fails,
    and 3 for a practice table without a fault.

    With --events it prints each event as it is stored: version, time (UTC), type, public part. The
    hidden part is encrypted in the log and not shown. With --json each line is then the event's
    leaf. The bytes that are signed are its canonical form: only the characters U+0085, U+2028 and
    U+2029 are escaped besides.

    ```
    dealer audit 7d02f3c2
    dealer audit 7d02f3c2 --round 2
    dealer audit 7d02f3c2 --events --after 120 --json | jq .type
    dealer audit 7d02f3c2a1b2c3d4e5f60718293a4b5c --url http://127.0.0.1:8080/
    ```
    """
)
@options.takes("table", "only")
@given("--key", "KEY", "The table's key, if you know it.")
@options.flag("--events", "Print the stored events, and check nothing.")
@given(
    "--after", "VERSION", "With --events: those after this one.", type=click.IntRange(0), default=0
)
@options.takes("database", "house_key", "url", "as_json")
async def audit(
    table: str,
    only: int | None,
    key: str | None,
    events: bool,
    after: int,
    database: str,
    house_key: Path | None,
    url: str | None,
    as_json: bool,
) -> None:
    if events:
        if url is not None or only is not None or key is not None:
            raise click.BadParameter("--events takes no --url, --round or --key.")
        await _print_events(table, after, database, as_json)
        return
    if after:
        raise click.BadParameter("--after is for --events.")
    damaged = None if url is not None else await _damage(database, table, house_key)
    try:
        lines = await verify.of_table(database, table, url=url, house_key=house_key)
    except DealerError as error:
        raise damaged or error from None
    report = verify.examine(lines, key=key)
    sentences = [
        sentence for sentence in _sentences(lines, report) if only in (None, sentence.round)
    ]
    if only is not None and report.ok and not sentences:
        rounds = amount(report.remarks.rounds, "round")
        raise click.BadParameter(f"This table has {rounds} and no round {only}.")
    if as_json:
        story = {"story": [_members_of(sentence) for sentence in sentences]}
        say_json(verify.as_members(report) | story | ({"damaged": str(damaged)} if damaged else {}))
    else:
        _print_sentences(sentences)
        verify.say_verdicts(report)
    if damaged is not None:
        raise damaged
    raise Exit(verify.exit_code(report))


async def _print_events(table: str, after: int, database: str, as_json: bool) -> None:
    from dealer.eventlog.rows import leaf_of

    async with options.read_log(database) as log:
        table_id = await options.find_table(log, table)
        async for rows in log.stream(table_id, after=after):
            for row in rows:
                if as_json:
                    echo(one_line(leaf_of(table_id, row)))
                else:
                    public = safe_text(row.public)
                    echo(f"{row.version:>6}  {format_time(row.at)}  {row.type:<16}  {public}")


async def _damage(database: str, table: str, house_key: Path | None) -> DatabaseDamaged | None:
    """What is wrong with the rows of the table in the log, which its bundle need not show."""
    from dealer.service.operations.log_check import keys_of, require_intact

    async with options.read_log(database) as log:
        table_id = await options.find_table(log, table)
        try:
            whole = await require_intact(log, table_id, await keys_of(database, house_key))
        except DatabaseDamaged as error:
            return error
    if not whole:
        echo_err(
            "Without the house key (--house-key) the hidden parts of the open round were not "
            "checked."
        )
    return None


def _sentences(lines: list[bytes], report: Report) -> list[Sentence]:
    """Sentences for the events that were verified; none if the bundle is not a signed log."""
    from dealer.history.sentences import describe_all
    from dealer.packs.catalogue import shipped
    from dealer.proof.bundle import OPENED

    if report.fault is not None:
        if report.fault.check in ("form", "heads", "saved"):
            return []
        openings = [line for line in lines if line.startswith(OPENED)]
        lines = [*lines[: report.fault.line], *openings]
    return list(describe_all(lines, report.swaps, shipped().pile_titles(DEFAULT)))


def _print_sentences(sentences: list[Sentence]) -> None:
    swapping = False
    for sentence in sentences:
        swap = sentence.swap
        if swap is None:
            swapping = False
            echo(f"{sentence.version:>6}  {format_time(sentence.at)[11:]}  {sentence.sentence}")
            continue
        if not swapping:
            echo(_HEADING)
            swapping = True
        words = " ".join(map(str, swap.words))
        a, b = swap.cards
        echo(f"{swap.step:>10} {swap.i:>4} {swap.j:>4}  {words:<18} {a} {b}")


def _members_of(sentence: Sentence) -> dict[str, Any]:
    members: dict[str, Any] = {
        "version": sentence.version,
        "at": sentence.at,
        "type": sentence.type,
        "sentence": sentence.sentence,
    }
    if sentence.round:
        members["round"] = sentence.round
    if sentence.cards:
        members["cards"] = sentence.cards
    if (swap := sentence.swap) is not None:
        members |= {"k": swap.shuffle_index, "step": swap.step}
        members |= {"i": swap.i, "j": swap.j, "words": swap.words}
    return members


@options.command(
    help="""Print a game's history: the players, the shuffles, and where each card went.

    The game is verified first; if a check fails, no history is printed and the exit code is 1.

    ```
    dealer history 7d02f3c2
    dealer history game.jsonl --round 2
    ```
    """
)
@options.takes("table_or_file", "only")
@given("--lang", "TAG", "The language of the text, such as de.", default=DEFAULT)
@options.takes("database", "url", "house_key")
async def history(
    source: str, only: int | None, lang: str, database: str, url: str | None, house_key: Path | None
) -> None:
    from dealer.history import text
    from dealer.packs.catalogue import shipped

    language = language_of(lang)
    if language is None:
        raise click.BadParameter(f"The languages are {', '.join(languages())}.")
    game = await verify.read_game(source, database, url=url, house_key=house_key)
    titles = shipped().pile_titles(language.tag)
    for line in text.write(game, round=only, language=language, games=titles):
        echo(line)


@options.command(
    help="""Print a table as it was at a version: seats, deck, hands and piles, bottom first.

    Without --seat or --all it is what everyone saw. A card that the viewer did not know is `??`; of
    a stack without a known card only the number of cards is printed. The hidden cards of a round
    that is still open need the house key: without it a remark says so. A bundle is verified first;
    if a check fails, nothing is printed and the exit code is 1. Nothing is written.

    ```
    dealer state 7d02f3c2 --at 57
    dealer state 7d02f3c2 --at 57 --seat 2
    dealer state game.jsonl --at 57 --seat 2
    dealer state 7d02f3c2a1b2c3d4e5f60718293a4b5c --at 57 --url http://127.0.0.1:8080/
    dealer state 7d02f3c2 --json | jq .stacks.deck
    ```
    """
)
@options.takes("table_or_file")
@given("--at", "VERSION", "The version; the newest if not given.", type=int)
@given("--seat", "SEAT", "As the player of this seat saw it.", type=click.IntRange(1))
@options.flag("--all", "With every card, as only the house knows it.", "every_card")
@options.takes("database", "house_key", "url", "as_json")
async def state(
    source: str,
    at: int | None,
    seat: int | None,
    every_card: bool,
    database: str,
    house_key: Path | None,
    url: str | None,
    as_json: bool,
) -> None:
    if seat is not None and every_card:
        raise click.BadParameter("Give --seat or --all, not both.")
    viewer: Viewer = "house" if every_card else seat
    from_bundle = url is not None or verify.is_file(source)
    if from_bundle:
        from dealer.analysis.open_bundle import OpenBundle

        game = await verify.read_game(source, database, url=url)
        found = OpenBundle(game).state(at, viewer=viewer)
    else:
        found = await _of_log(source, at, viewer, database, house_key)
    if as_json:
        say_json(
            {"table": found.table, "viewer": found.viewer}
            | found.members
            | {"stacks": found.stacks, "complete": found.complete}
        )
    else:
        for line in _lines(found):
            echo(line)
    if not found.complete:
        why = "" if from_bundle else " without the house key (--house-key)"
        echo_err(f"Round {found.round} is still open:{why} its hidden cards are not known.")


async def _of_log(
    table: str, at: int | None, viewer: Viewer, database: str, house_key: Path | None
) -> PastTable:
    from dealer.analysis.open_log import AsyncLog

    async with options.read_log(database) as log:
        id_ = await options.find_table(log, table)
    key = None if viewer is None else _key(database, house_key)
    async with await AsyncLog.open(database, key) as opened:
        return await opened.state(id_.hex(), at, viewer=viewer)


def _key(database: str, given: Path | None) -> Path | None:
    """The key that was named, or the one beside the database if it is there."""
    from dealer.eventlog.keys import key_file

    if given is not None:
        return given
    try:
        file = key_file(database)
    except ConfigurationError:
        return None
    return file if file.exists() else None


def _lines(found: PastTable) -> Iterator[str]:
    """The text for people."""
    yield f"Table {found.table}, version {found.version}, {format_time(found.at)} UTC"
    yield _whose(found)
    for seat, name in found.seats.items():
        host = ", host" if seat == found.host_seat else ""
        yield f"  seat {seat}: {safe_text(name)}{host}"
    if found.closed:
        yield "The table is closed."
    elif found.round is None:
        opened = (
            amount(found.rounds, "round was", "rounds were") if found.rounds else "no round was"
        )
        yield f"No round is open; {opened} opened."
    else:
        yield from _round(found)


def _whose(found: PastTable) -> str:
    if isinstance(found.viewer, int):
        name = safe_text(found.seats[found.viewer])
        return f"As {name} (seat {found.viewer}) saw it:"
    return "With every card:" if found.viewer == "house" else "As everyone saw it:"


def _round(found: PastTable) -> Iterator[str]:
    running = found.members["round"].get("shuffle")
    shuffle = "" if running is None else f"; shuffle {running['k']} of {running['stack']} runs"
    yield f"Round {found.round}{shuffle}"
    labels = {name: _label(found, name) for name in sorted(found.stacks, key=_order)}
    width = max(map(len, labels.values()))
    for name, label in labels.items():
        cards = found.stacks[name]
        known = "" if set(cards) == {UNKNOWN} else "  " + " ".join(cards)
        yield f"  {label:<{width}}  {len(cards):>3}{known}"


def _label(found: PastTable, stack: str) -> str:
    seat = seat_of(stack)
    if seat is None:
        return stack.replace(":", " ")
    if seat not in found.seats:
        return f"hand of the free seat {seat}"
    return f"hand of {safe_text(found.seats[seat])} (seat {seat})"


def _order(stack: str) -> tuple[bool, str]:
    """The deck first, then hands, then piles."""
    return stack != DECK, stack
