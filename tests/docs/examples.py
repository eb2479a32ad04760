"""Which test runs each example of the documents, and why a few are run by none.

By document, then by language and, if there are several, the first words of an example: the first
key that an example begins with counts.
"""

from __future__ import annotations

LANGUAGES = ("python", "js", "sh", "sql", "json")

BLOCKS = "tests/docs/test_blocks.py"
SITE = "tests/docs/test_site.py::site"
TUTORIAL = "tests/docs/test_tutorials.py::test_a_tutorial"
PROGRAMS = "tests/docs/test_programs.py"
CLIENT = "tests/web/client/test_document.py"
SERVICE = "tests/foreign/test_services_document.py::test_a_whole_service"
CLOCK = "tests/foreign/test_services_document.py::test_the_service_with_a_clock"
WITH_CURL = f"{BLOCKS}::test_a_service_with_curl"
FOLLOWER = "tests/feed/test_readme.py::test_a_follower"
SIGNATURES = (
    "tests/foreign/test_webhook_libraries.py"
    "::test_genuine_requests_are_accepted_and_forged_ones_refused"
)
OPENSSL = "tests/foreign/test_document.py::test_the_openssl_commands_verify_a_bundle"
VERIFIERS = "tests/foreign/test_document.py::test_the_other_commands_verify_a_bundle"
COMMANDS = "tests/cli/test_operating.py::test_the_commands_run"
SBOM = "tests/distributions/test_sbom.py"
READING = "tests/analysis/test_readme.py"
RESTORED = "tests/cli/test_backup.py::test_two_nodes_by_the_steps_of_the_document"
FLAGS = f"{BLOCKS}::test_the_flags_of_serve_are_accepted"

RUN: dict[str, dict[str, str]] = {
    "README.md": {
        "python": f"{BLOCKS}::test_the_readme_in_python",
        "js": f"{BLOCKS}::test_the_readme_in_javascript",
        "sh curl": f"{BLOCKS}::test_a_deck_with_curl",
    },
    ".client/README.md": {"python": f"{BLOCKS}::test_the_readme_of_the_client"},
    "dealer/docs/README.md": {"sh": SITE},
    ".github/CONTRIBUTING.md": {
        "sh .venv/bin/pip install -q -e '.[docs]'": SITE,
    },
    ".github/RELEASING.md": {
        "sh cyclonedx-py": f"{SBOM}::test_the_documented_command_lists_every_package_of_the_image"
    },
    "dealer/docs/tutorials/audit.md": {"sh": TUTORIAL},
    "dealer/docs/tutorials/backend.md": {"sh": TUTORIAL, "python": TUTORIAL},
    "dealer/docs/tutorials/bot.md": {"sh": TUTORIAL, "python": TUTORIAL},
    "dealer/docs/tutorials/family-table.md": {"sh": TUTORIAL},
    "dealer/docs/tutorials/stream-a-table.md": {"sh": TUTORIAL, "python": TUTORIAL},
    "dealer/docs/tutorials/what-if.md": {"sh": TUTORIAL, "python": TUTORIAL},
    "dealer/docs/examples/README.md": {
        "sh # Terminal 1\ndealer serve": f"{PROGRAMS}::reader",
        "sh # Terminal 2": f"{PROGRAMS}::test_a_game",
        "sh # Terminal 3": f"{PROGRAMS}::test_a_game",
        "sh # Terminal 4": f"{PROGRAMS}::test_the_bot_returns_to_its_seat",
        "sh": f"{PROGRAMS}::test_the_backend_seats_its_users_and_stores_the_feed",
    },
    "dealer/web/CLIENT.md": {
        "python": f"{CLIENT}::test_the_python_example",
        "js": f"{CLIENT}::test_the_javascript_examples",
    },
    "dealer/web/GENERATED.md": {"sh": f"{BLOCKS}::test_the_downloads_of_the_client"},
    "dealer/web/PROTOCOL.md": {"sh": f"{CLIENT}::test_the_terminal_example"},
    "dealer/web/README.md": {"js": f"{BLOCKS}::test_the_verifier_in_a_program"},
    "dealer/gateway/SERVICES.md": {
        "sh dealer serve": FLAGS,
        "sh": WITH_CURL, "json": WITH_CURL, "python async def keep_time": CLOCK,
        "python": SERVICE,
    },
    "dealer/gateway/DECKS.md": {"sh": f"{BLOCKS}::test_a_deck_with_curl"},
    "dealer/feed/README.md": {
        "sh": f"{BLOCKS}::test_the_feed_with_curl",
        "json": "tests/docs/test_examples.py::test_objects_of_the_feed",
        "python import http": FOLLOWER,
        "js export async function* follow": FOLLOWER,
        "python": SIGNATURES,
        "js": SIGNATURES,
    },
    "dealer/analysis/README.md": {
        "python import dealer, pandas": f"{READING}::test_three_lines_with_pandas",
        "python import asyncio": f"{READING}::test_the_asynchronous_example",
        "python from dealer import open_bundle": f"{READING}::test_the_example_with_a_bundle",
        "python": f"{READING}::test_the_first_example",
    },
    "dealer/analysis/QUESTIONS.md": {
        "sql": "tests/analysis/test_questions.py::test_the_answers_are_those_of_the_page",
    },
    "dealer/bots/README.md": {
        "sh": "tests/bots/test_readme.py::test_the_command",
        "json": "tests/bots/test_readme.py::test_the_rule_of_test_decks",
    },
    "dealer/packs/README.md": {
        "json": "tests/packs/test_readme.py::test_the_examples_are_accepted",
        "sh": "tests/cli/test_packs.py::test_the_files_of_the_document_are_checked",
        "python": f"{BLOCKS}::test_a_table_of_a_game",
    },
    "dealer/lab/README.md": {
        "python from": "tests/lab/test_counts.py::test_the_histogram_of_the_seeds",
        "python import": "tests/lab/test_sources.py::test_the_words_for_other_suites_are_a_tape",
    },
    "dealer/proof/README.md": {
        "sh GO111MODULE": VERIFIERS, "sh node": VERIFIERS, "sh dealer": VERIFIERS, "sh": OPENSSL,
    },
    "dealer/cli/OPERATING.md": {
        "sh dealer backup": COMMANDS, "sh mkdir -m": RESTORED,
        "sh dealer restore": RESTORED, "sh createdb": RESTORED,
        "sh dealer serve --issuer": FLAGS,
        "sh dealer config": COMMANDS,
        "sh dealer tables disable": COMMANDS,
        "sh dealer key": COMMANDS,
        "sh dealer tables close": COMMANDS,
        "sh mkdir -p": COMMANDS,
        "sh dealer rotate-key": COMMANDS,
    },
    "dealer/cli/REFERENCE.md": {"sql": "tests/e2e/test_sql.py::test_the_documented_statements"},
    "dealer/cli/FORGETTING.md": {"sh": "tests/cli/test_archive.py::test_a_player_is_forgotten"},
    "dealer/cli/MANAGED_POSTGRESQL.md": {
        "sh pg_dump": "tests/cli/test_roles.py::test_the_administrator_restores_a_dump",
        "sh": "tests/cli/test_roles.py::test_the_steps_of_the_page_about_providers",
    },
    "dealer/cli/MANY_NODES.md": {
        "sql": "tests/cli/test_partitions.py::test_partitions_keep_every_byte_and_play_goes_on",
    },
}  # fmt: skip

NOT_RUN: dict[str, dict[str, str]] = {
    "README.md": {"sh": "installs; `.ci/run` runs the second, and tests/browser/first_minute.py"},
    ".github/CONTRIBUTING.md": {"sh": "installs, runs all tests: `.ci/run` does both"},
    "dealer/cli/OPERATING.md": {
        "sh dealer serve --house": f"Caddy needs a public name; {FLAGS} runs the first line",
        "sh ls -l /proc": "test_acknowledged_events_can_be_rescued_from_the_process does the steps",
    },
    "dealer/cli/DEPLOYING.md": {"sh": "needs root, a public name, or an account at a platform"},
    "dealer/cli/MANY_NODES.md": {"sh install": "needs a container engine"},
    "dealer/CONSISTENCY.md": {
        "sh": "needs porcupine; tests/consistency/test_consistency.py runs it"
    },
    "tests/simulation/README.md": {
        "sh": "takes minutes to hours; tests/simulation/test_simulation.py runs few seeds",
    },
    "tests/harness/README.md": {
        "python": "the pattern of tests/e2e/test_game.py",
        "sh": "takes minutes; tests/chaos/test_kills.py runs the same with a small count",
    },
}
