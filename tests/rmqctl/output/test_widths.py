"""The tables of all commands on terminals of several widths, with long names and wide letters."""

import json
import re
import time

import pytest
from rich.cells import cell_len

from tests.support import golden
from tests.support.every_command import CALLS, Call
from tests.support.rich_store import GROUPS, TOPICS, make_rich_store
from tests.support.terminal import on_a_terminal

LOOKS = [call for call in CALLS if not call.changes]
STORES = ("rich", "retry-dlq-4.9", "retention-4.9", "basic-5.3")
LONG_NAMES = (*TOPICS, *GROUPS)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Folders by name, and the words of calls."""
    place = tmp_path_factory.mktemp("widths")
    rich = make_rich_store(place / "rich" / "s", time.time_ns() // 1_000_000 - 600_000)
    roots = {"rich": rich.root}
    for name in STORES[1:]:
        roots[name] = golden.extract(name, place)
    words = {**rich.words, "new": str(place / "new"), "snapshot": str(place / "none")}
    return roots, {**words, "other": str(roots["basic-5.3"])}


def shown(stores, name, columns, tmp_path) -> dict[Call, str]:
    """What a terminal of a width shows of each call; sentences of stderr go elsewhere."""
    roots, words = stores
    file = tmp_path / "calls.json"
    file.write_text(json.dumps([call.words(words) for call in LOOKS]))
    environment = {
        "RMQCTL_STORE": str(roots[name]),
        "RMQCTL_NO_INPUT": "1",
        "RMQCTL_PROGRESS": "none",
        "RMQCTL_OUTPUT": "table",
        "RMQCTL_TZ": "Europe/Berlin",
        "NO_COLOR": "1",
    }
    with (tmp_path / "stderr").open("wb") as stderr:
        arguments = ["-m", "tests.support.many_calls", file]
        text = on_a_terminal(arguments, columns=columns, env=environment, stderr=stderr)
    parts = re.split(r"<<<\d+ -?\d+>>>\n", text)
    assert len(parts) == len(LOOKS) + 1
    return dict(zip(LOOKS, parts, strict=False))


def table_of(text: str) -> list[str]:
    """The lines of a table, which begins with its heading; none for a single thing."""
    has_heading = re.match(r"[A-Z_0-9]+( \(UTC[^)]*\))?(  |\n)", text)
    return text.split("\n") if has_heading else []


def is_name_alone(line: str) -> bool:
    """Whether a line holds nothing but a name that is longer than the terminal."""
    return " " not in line.strip() and any(name in line for name in LONG_NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 100, 140])
@pytest.mark.parametrize("name", STORES)
def test_every_table_keeps_to_the_width_of_the_terminal(stores, name, columns, tmp_path):
    tables = 0
    for call, text in shown(stores, name, columns, tmp_path).items():
        assert "internal error" not in text, call.line
        lines = table_of(text)
        tables += bool(lines)
        for line in lines:
            assert cell_len(line) <= columns or is_name_alone(line), (call.line, line)
    assert tables >= (50 if name == "rich" else 20)
