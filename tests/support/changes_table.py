"""The table of docs/changes.md: what each changing command does with and without consent.

Each cell is measured with the program on a small store (tests.support.change_calls). Which commands
there are, and how each changes something, is read off the commands themselves
(``rmqctl.cli.marks.changes``).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker.embedded.broker import EmbeddedBroker
from rmqctl import Message
from rmqctl.cli import lazy
from rmqctl.cli.marks import Changes
from rmqctl.cli.tree import TREE, CommandRef
from tests.support.change_calls import Seen
from tests.support.cli import run
from tests.support.copies import age_files, new_folder
from tests.support.rich_store import TOPIC, make_rich_store
from tests.support.rows_table import environment

ROOT: Final = Path(__file__).resolve().parents[2]
HEAD: Final = Path(__file__).with_name("changes_head.md")


class Case(NamedTuple):
    """A call of a changing command; ``{name}`` in it is a word of the prepared store."""

    line: str
    name: str | None = None
    """What ``--confirm`` needs."""
    state: str = ""
    """What is done to the store before: see tests.support.change_calls."""
    undo: str = ""
    """The call that takes it back."""
    same: str = ""
    """The call whose output is then as before."""
    outside: bool = False
    """Whether it writes outside the store, which stays as it is."""
    ends: bool = True
    """False for a command that goes on until it is ended, or for too long: only -n is tried."""

    @property
    def label(self) -> str:
        """The line as a reader would write it."""
        names = re.sub(r"\{place\}/([\w.]+)", r"\1", self.line)
        return re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), names).replace("|", "\\|")

    @property
    def command(self) -> str:
        """The name of the command."""
        words = self.line.split()
        return words[0] if isinstance(TREE[words[0]], CommandRef) else " ".join(words[:2])


_PROGRESS: Final = "offset list"
_TAKEN_BACK: Final = "offset undo --last"

CASES: Final = (
    Case("produce orders {exported} --input jsonl -Q 0"),
    Case("consume orders -g fresh --new-group --from -1d -e"),
    Case(
        "resetOffsetByTime -g readers -t orders -s now",
        undo=_TAKEN_BACK,
        same=_PROGRESS,
    ),
    Case("topic create made"),
    Case("topic alter orders --perm 4"),
    Case("topic delete orders", name="orders"),
    Case("group create made"),
    Case("group alter readers --retry-max-times 3"),
    Case("group delete readers", name="readers"),
    Case("message get -t orders -Q 0 -O 0 --save {place}/body", outside=True),
    Case("message export orders --save {place}/orders.jsonl", outside=True),
    Case("message import {exported} --map-topic orders=copied --topic copied"),
    Case("dlq redrive readers --all"),
    Case(
        "dlq ack readers --all",
        undo="dlq ack readers --undo",
        same="dlq list",
    ),
    Case("retry now readers --regex newline"),
    Case("retry dead readers --regex newline"),
    Case("offset export readers --save {place}/offsets.csv", outside=True),
    Case(
        "offset reset -g readers -t orders --to-latest",
        undo=_TAKEN_BACK,
        same=_PROGRESS,
    ),
    Case("offset undo --last", undo=_TAKEN_BACK, same=_PROGRESS),
    Case("offset import {offsets}", undo=_TAKEN_BACK, same=_PROGRESS),
    Case("offset delete -g readers -t orders", undo=_TAKEN_BACK, same=_PROGRESS),
    Case("offset orphans --fix", undo=_TAKEN_BACK, same=_PROGRESS),
    Case("lag report --engine local --save {place}/lag.json -o json -q", outside=True),
    Case("lag record {place}/lag.jsonl", outside=True),
    Case("lag compact {history}", outside=True),
    Case("lag warmup", ends=False),
    Case("broker start", ends=False),
    Case("broker config set fileReservedTime 24"),
    Case("bench produce made -c 9 --warm-up 0s"),
    Case("bench both made -c 9 --warm-up 0s"),
    Case("store init {place}/new --small", outside=True),
    Case("store clean", state="expired"),
    Case("store repair", state="damaged"),
    Case("store rebuild queue", state="damaged"),
    Case("store recover-offsets", state="lost"),
    Case("store recover-config", state="torn"),
    Case("store snapshot --save {place}/taken", outside=True),
    Case("store restore {snapshot}", name="s"),
    Case("store carve {place}/carved -t orders", outside=True),
    Case("config set tz UTC --user", outside=True),
    Case("context use prod --user", outside=True),
    Case("context add new tz=UTC --user", outside=True),
    Case("context rm prod", outside=True),
)


@cache
def marked() -> Mapping[str, Changes]:
    """How each command that changes something does it, in the order of the tree."""
    found = {}
    for name, entry in TREE.items():
        leaves = (
            {name: entry}
            if isinstance(entry, CommandRef)
            else {f"{name} {verb}": leaf for verb, leaf in entry.verbs.items()}
        )
        for path, leaf in leaves.items():
            command: Any = lazy.build(path.split()[-1], leaf)
            if command.changes is not None:
                found[path] = command.changes
    return found


class Measured(NamedTuple):
    """What a case did in each of the ways to call it; None for ways that it does not have."""

    case: Case
    how: Changes
    dry: Seen
    refused: Seen | None
    """Without a terminal and without consent."""
    answered_no: Seen | None
    answered_yes: Seen | None
    done: Seen | None
    """With ``--yes``, and the name if one is needed."""
    unnamed: Seen | None
    """With ``--yes`` alone, where a name is needed."""
    journal: tuple[Mapping[str, Any], ...]
    """The new rows of ``audit list``."""
    undone: bool
    """Whether ``case.same`` printed the same before, and after ``case.undo``, but not between."""

    @property
    def cells(self) -> list[str]:
        """The row of the document."""
        entries = dict.fromkeys(row["command"] for row in self.journal)
        return [
            f"`{self.case.label}`",
            self.how.value,
            *map(_cell, (self.dry, self.refused, self.answered_no, self.answered_yes, self.done)),
            "yes" if self.case.name is not None else "-",
            ", ".join(f"`{name}`" for name in entries) or "-",
            f"`{self.case.undo}`" if self.undone else "-",
        ]


def _cell(seen: Seen | None) -> str:
    if seen is None:
        return "-"
    done = ["changed"] if seen.changed else []
    return ", ".join([str(seen.code), *(["rows"] if seen.out else []), *done])


def measured() -> list[Measured]:
    """All cases, measured on copies of one store."""
    with _prepared() as (place, words):
        calls, shapes = [], []
        for case in CASES:
            shape = _shape(case, marked()[case.command])
            shapes.append(shape)
            calls += [_call(case, way, words) for way in shape]
        seen = iter(_run(place, calls))
        return [
            _measured(case, {way: next(seen) for way in shape})
            for case, shape in zip(CASES, shapes, strict=True)
        ]


DRY, REFUSED, NO, YES, DONE, UNNAMED = "dry", "refused", "no", "yes", "done", "unnamed"


def _shape(case: Case, how: Changes) -> list[str]:
    if not case.ends:
        return [DRY]
    asks = how is Changes.ASKS
    ways = [DRY, *([REFUSED, NO] if asks else [])]
    ways += [UNNAMED] if case.name is not None else []
    return [*ways, *([YES] if asks else []), DONE]


def _call(case: Case, way: str, words: Mapping[str, str]) -> dict[str, Any]:
    line = case.line.format_map(words).split()
    more = {DRY: ["-n"], UNNAMED: ["-y"]}.get(way, [])
    answer = {NO: "n\n", YES: f"{case.name or 'y'}\n"}.get(way)
    lines: list[list[str]] = [[*line, *more]]
    answers = [answer]
    if way == DONE:
        consent = ["--confirm", case.name] if case.name is not None else []
        asks = marked()[case.command] is Changes.ASKS
        lines = [[*line, *consent, *(["-y", "--reason", "why"] if asks else [])]]
        audit = ["audit", "list", "-o", "json"]
        if not case.outside:
            lines = [audit, *lines, audit]
        if case.undo:
            state = case.same.split()
            lines = [state, *lines, [*case.undo.split(), "-y"], state]
        answers = [None] * len(lines)
    form = "json" if way == DONE else "plain"
    return {"state": case.state, "lines": lines, "answers": answers, "form": form}


def _measured(case: Case, seen: Mapping[str, Sequence[Seen]]) -> Measured:
    calls = list(seen.get(DONE, ()))
    done, journal, undone = None, [], False
    if case.undo:
        before, *calls, taken_back, after = calls
        undone = taken_back.code == 0 and before.out == after.out
    if calls and not case.outside:
        audit, done, audit_then = calls
        known = {row["change_id"] for row in _json(audit)}
        journal = [row for row in _json(audit_then) if row["change_id"] not in known]
    elif calls:
        (done,) = calls

    def first(way: str) -> Seen | None:
        return seen[way][0] if way in seen else None

    return Measured(
        case,
        marked()[case.command],
        seen[DRY][0],
        first(REFUSED),
        first(NO),
        first(YES),
        done,
        first(UNNAMED),
        tuple(journal),
        undone,
    )


def _json(seen: Seen) -> list[dict[str, Any]]:
    return list(json.loads(seen.out)) if seen.code == 0 and seen.out else []


@contextmanager
def _prepared() -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with a store that has everything, settings, and files that commands read."""
    folder = new_folder("changes-")
    place = folder / "now"
    try:
        made = make_rich_store(place / "s", time.time_ns() // 1_000_000 - 600_000)
        exported = run("consume", TOPIC, "-e", "-o", "jsonl", "-S", made.root)
        (place / "exported.jsonl").write_bytes(exported.raw)
        settings = place / "config" / "rmqctl" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text('[contexts.prod]\ntz = "UTC"\n')
        snapshot = place / "snapshot"
        assert run("store", "snapshot", "--save", snapshot, "-S", made.root, "-q").code == 0
        with EmbeddedBroker.open(made.root) as broker:  # a log of several files
            for number in range(24):
                broker.send(Message("filler", bytes([number]) * (30 << 10)))
        age_files(place)
        shutil.copytree(place, folder / "kept")
        yield place, {**made.words, "snapshot": str(snapshot), "place": str(place)}
    finally:
        shutil.rmtree(folder)


def _run(place: Path, calls: Sequence[Mapping[str, Any]]) -> list[list[Seen]]:
    file = place.parent / "calls.json"
    kept = place.parent / "kept"
    file.write_text(json.dumps({"kept": str(kept), "place": str(place), "calls": calls}))
    names = {"RMQCTL_NO_INPUT", "RMQCTL_OUTPUT", "RMQCTL_CONFIG"}
    more = {name: value for name, value in environment(place).items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.change_calls", str(file)],
        cwd=ROOT,
        env={**os.environ, **more, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [[Seen(**one) for one in call] for call in json.loads(done.stdout)]


_HEAD: Final = (
    *("command", "how", "`-n`", "no terminal", "no", "yes", "`-y`"),
    *("`--confirm`", "journal", "undo"),
)


def document(rows: Iterable[Measured]) -> str:
    """The text of docs/changes.md."""
    lines = [_HEAD, ["---"] * len(_HEAD), *(row.cells for row in rows)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return HEAD.read_text("utf-8") + "\n" + table


def declared(text: str) -> dict[str, str]:
    """The commands of a document, and how they change something."""
    rows = re.findall(r"(?m)^\| `(.+?)` \| (\w+) \|", text)
    return {Case(line).command: how for line, how in rows}
