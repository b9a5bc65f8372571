"""The table of docs/rows.md: what each command that prints rows does with them.

Cells about widths are measured with the installed program on a terminal, on a store with names of
127 characters and wide letters. The other cells are read off the program's declarations.
"""

import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from rmqctl.cli import lazy
from rmqctl.cli.tree import TREE, CommandRef
from rmqctl.output.fields import fields_of
from rmqctl.output.nothing import nothing_sentence
from tests.support import golden
from tests.support.cli import run
from tests.support.copies import age_files, copy_store, new_folder
from tests.support.every_command import CALLS, Call
from tests.support.rich_store import TOPIC, make_rich_store
from tests.support.terminal import on_a_terminal

WIDTHS: Final = (80, 100, 140)
BODIES: Final = {
    "consume": "all; without -o the bodies alone",
    "produce": "all; without -o a line for one message, a summary for more",
    "message import": "all; without -o a summary",
    "message export": "all; files: jsonl, csv, parquet, raw",
    "lag check": "json, nagios, prometheus",
    "lag report": "all but wide; html, parquet",
    "explain": "all; without -o paragraphs",
    "cheat": "all; without -o a sheet",
    "doctor": "all; without -o lines",
}
"""Commands whose formats are not just those of the renderer."""


class Command(NamedTuple):
    """A command that prints rows: what its declarations say."""

    name: str
    row_types: tuple[type, ...]
    options: frozenset[str]

    @property
    def nothing(self) -> str:
        """What an empty result says on a terminal."""
        return nothing_sentence(self.name, "STORE", filtered=False)

    @property
    def unknown(self) -> list[str]:
        """Fields of the first row type that may be unknown."""
        return [field.name for field in fields_of(self.row_types[0]) if field.nullable]

    @property
    def lists_names(self) -> bool:
        """Whether ``--all`` is about names, and not about messages, as in ``dlq ack --all``."""
        return (
            self.name.split()[0] in ("topic", "group", "offset", "lag")
            and "reset" not in (self.name.split()[-1])
        )


def commands() -> list[Command]:
    """All commands with rows, in the order of the tree."""
    found = []
    for name, entry in TREE.items():
        leaves = (
            {name: entry}
            if isinstance(entry, CommandRef)
            else {f"{name} {verb}": leaf for verb, leaf in entry.verbs.items()}
        )
        for path, leaf in leaves.items():
            command: Any = lazy.build(path.split()[-1], leaf)
            names = {option for p in command.params for option in p.opts}
            if command.row_types:
                found.append(Command(path, tuple(command.row_types), frozenset(names)))
    return found


@contextmanager
def prepared() -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with a store that has everything, and the words of calls.

    The length of the path is always the same: tables show paths.
    """
    place = new_folder("rows-") / "now"
    try:
        made = make_rich_store(place / "s", time.time_ns() // 1_000_000 - 600_000)
        exported = run("consume", TOPIC, "-e", "-o", "jsonl", "-S", made.root)
        (place / "exported.jsonl").write_bytes(exported.raw)
        (place / "settings.toml").write_text('[contexts.prod]\ntz = "Asia/Tokyo"\n')
        snapshot = place / "snapshot"
        run("store", "snapshot", "--save", snapshot, "--copy", "-S", made.root, "-q")
        other = golden.extract("basic-4.9", place)
        age_files(place)
        copy_store(place, place.parent / "kept")
        words = {"new": str(place / "new"), "snapshot": str(snapshot), "other": str(other)}
        yield place, {**made.words, **words}
    finally:
        shutil.rmtree(place.parent)


def environment(place: Path, **more: str) -> dict[str, str]:
    """The environment of a call."""
    return {
        "HOME": str(place),
        "XDG_CONFIG_HOME": str(place / "config"),
        "XDG_CONFIG_DIRS": str(place / "xdg"),
        "RMQCTL_STORE": str(place / "s"),
        "RMQCTL_CONFIG": str(place / "settings.toml"),
        "RMQCTL_NO_INPUT": "1",
        "RMQCTL_PROGRESS": "none",
        "RMQCTL_OUTPUT": "table",
        "RMQCTL_TZ": "UTC",
        "NO_COLOR": "1",
        **more,
    }


def on_terminals(
    calls: Sequence[Call],
    place: Path,
    words: Mapping[str, str],
    columns: int,
    *,
    sentences: bool = False,
    **more: str,
) -> dict[Call, tuple[int, str]]:
    """Exit code and output of calls, one after the other, on a terminal of a width.

    stderr is left out, unless ``sentences``. The folder is as before afterwards.
    """
    file = place.parent / "calls.json"
    file.write_text(json.dumps([call.words(dict(words)) for call in calls]))
    with (place.parent / "stderr").open("wb") as stderr:
        text = on_a_terminal(
            ["-m", "tests.support.many_calls", file],
            columns=columns,
            env=environment(place, **more),
            stderr=None if sentences else stderr,
        )
    if any(call.changes for call in calls):
        shutil.rmtree(place)
        copy_store(place.parent / "kept", place)
    parts = re.split(r"<<<\d+ (-?\d+)>>>\n", text)
    assert len(parts) == 2 * len(calls) + 1
    codes = map(int, parts[1::2])
    return dict(zip(calls, zip(codes, parts[::2], strict=False), strict=True))


def lines_of_table(text: str) -> list[str]:
    """The lines of a table; none if the text is no table."""
    lines = text.splitlines()
    return lines if lines and headings_in(lines[0]) else []


def headings_in(line: str) -> list[str]:
    """The headings of a table; none if the line is something else."""
    names = re.split(r"  +", line.strip())
    known = all(re.fullmatch(r"[A-Z][A-Z0-9_]*( \(UTC\))?", name) for name in names)
    return names if known else []


class Measured(NamedTuple):
    """The tables of one call."""

    call: Call
    whole: list[str]
    """The headings that a very wide terminal shows."""
    very_wide: list[str]
    """The lines that it shows."""
    tables: dict[int, list[str]]
    """The lines of the table, by width of the terminal."""

    def left_out(self, columns: int) -> list[str]:
        """The headings that a terminal of a width does not show."""
        shown = headings_in(self.tables[columns][0])
        return [name.partition(" (")[0] for name in self.whole if name not in shown]

    @property
    def label(self) -> str:
        """The call as a reader would write it."""
        command, _, rest = self.call.line.partition(" -- ")
        words = [re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), rest)] if rest else []
        return " ".join([command, *words])


def measured(place: Path, words: Mapping[str, str]) -> list[Measured]:
    """What all calls that print tables show on terminals of all widths."""
    found = []
    looks = [call for call in CALLS if not call.changes]
    changes = [call for call in CALLS if call.changes and not call.stdin]
    for calls in (looks, changes):
        whole = on_terminals(calls, place, words, 1000)
        narrow = {width: on_terminals(calls, place, words, width) for width in WIDTHS}
        for call in calls:
            lines = lines_of_table(whole[call][1])
            if not lines:
                continue
            tables = {width: lines_of_table(narrow[width][call][1]) for width in WIDTHS}
            assert all(tables.values()), call.line
            found.append(Measured(call, headings_in(lines[0]), lines, tables))
    return found


HEAD: Final = Path(__file__).with_name("rows_head.md")
"""The beginning of the document."""


def document(rows: Iterable[Measured]) -> str:
    """The text of docs/rows.md."""
    parts = [HEAD.read_text("utf-8"), "## Widths\n", _table(_WIDTH_HEAD, map(_width_cells, rows))]
    parts += ["## Other cells\n", _table(_OTHER_HEAD, map(_other_cells, commands()))]
    return "\n".join(parts)


_WIDTH_HEAD: Final = ("command", *(f"left out at {width}" for width in WIDTHS))
_OTHER_HEAD: Final = ("command", "formats", "empty", "unknown", "`--all`")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _width_cells(row: Measured) -> list[str]:
    cells = [", ".join(row.left_out(width)) or "-" for width in WIDTHS]
    return ["`" + row.label.replace("|", "\\|") + "`", *cells]


def _other_cells(command: Command) -> list[str]:
    return [
        f"`{command.name}`",
        BODIES.get(command.name, "all"),
        command.nothing or "-",
        ", ".join(command.unknown) or "-",
        "yes" if "--all" in command.options and command.lists_names else "-",
    ]


def other_part(text: str) -> str:
    """The part of the document that the declarations decide alone."""
    return text.partition("## Other cells\n")[2]
