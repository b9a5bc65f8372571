"""Every call of rmqctl in a document or a text of the program is one that the program takes."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from rmqctl.cli.tree import TREE, CommandGroup
from tests.support.parsing import parsed
from tests.support.shell_lines import calls_in

ROOT = Path(__file__).resolve().parents[1]
# The pages of docs/tasks run (tests/test_tasks.py), wrong calls with their errors included.
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "tasks"),
]
_SHELLS = {"console", "sh", "bash"}
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]


def lines_of(text: str) -> list[str]:
    """The lines for a shell in a document's blocks, and the calls between backquotes."""
    found = []
    for language, block in re.findall(
        r"^```(\w*)[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    ):
        if language in _SHELLS:
            lines = re.sub(r"\\\n(> )?", " ", block).splitlines()
            typed = [line[2:] for line in lines if line.startswith("$ ")]
            found += typed if language == "console" else [line.removeprefix("$ ") for line in lines]
    rest = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", rest):
        line = " ".join(code.split())
        if re.match(r"rmqctl [a-zR-]|.*\| rmqctl ", line):
            found.append(line)
    return found


def mistake_in(words: list[str]) -> str | None:
    """What the program would say of a call; None for one that it takes.

    A sentence may leave out arguments, as in `rmqctl produce`.
    """
    try:
        parsed(words)
    except _USAGE_ERROR as error:
        missing = type(error).__name__ == "MissingParameter"
        return None if missing else str(error)
    except typer.Exit:  # --help
        return None
    return None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_calls_in_a_document_are_ones_that_the_program_takes(path: Path) -> None:
    for line in lines_of(path.read_text("utf-8")):
        for words in calls_in(line) if "rmqctl" in line else ():
            placeholder = words[-1:] == ["COMMAND"] or words[:1] == ["COMMAND"]
            assert placeholder or mistake_in(words) is None, (line, mistake_in(words))


def test_a_wrong_call_is_found() -> None:
    assert lines_of("a `rmqctl topic list`\n```sh\nrmqctl b\n```\n```json\n`rmqctl c`\n```\n") == [
        "rmqctl b",
        "rmqctl topic list",
    ]
    assert mistake_in(["topic", "list", "--nope"])
    assert mistake_in(["topci"])


@pytest.mark.parametrize(
    "path", sorted((ROOT / "rmqctl").rglob("*.py")), ids=lambda path: path.name
)
def test_commands_that_the_program_names_exist(path: Path) -> None:
    for noun, verb in re.findall(
        r"['`]rmqctl ([a-z][\w-]*)(?: ([a-z][\w-]*))?", path.read_text("utf-8")
    ):
        assert noun in TREE, noun
        entry = TREE[noun]
        if isinstance(entry, CommandGroup) and verb:
            assert verb in entry.verbs, f"{noun} {verb}"
