"""Rows of messages from and to files; whole processes, messages of 100 bytes with a key and a tag.

Beside each stands a script that does nothing but ``json.loads`` with each line of the same rows as
JSON: they have all fields, as ``consume -o jsonl`` and ``message export`` write them. Before rows
were columns, an import took 5.6 times the time of the script, an export 4.8 times: the goals are an
eighth of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.commands import peer_script, rmqctl, seconds_of, write_lines
from benchmarks.contest import Contestant
from benchmarks.goals import row
from benchmarks.measures.memory import peak_of
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from storage.store import MessageStore

NAME = "exchange"
_PEER = "json.loads"
_LIMIT_MB = 100


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(1_000_000, 100_000)
    with run.folder() as folder:
        root = folder / "source"
        MessageStore.create(root)
        _fill(folder / "lines", root, count)
        jsonl, csv = folder / "rows.jsonl", folder / "rows.csv"
        for file in (jsonl, csv):
            seconds_of([*_on(root), "message", "export", "--save", str(file)])
        new = partial(_into_a_new_store, run)
        out = ["message", "export", "--jobs", "1", "--save", str(folder / "out.jsonl")]
        contestants: dict[str, Contestant] = {
            "produce jsonl": lambda: new("produce", "rows", "--input", "jsonl", str(jsonl)),
            "produce csv": lambda: new("produce", "rows", "--input", "csv", str(csv)),
            "import": lambda: new("message", "import", str(jsonl)),
            "export": lambda: seconds_of([*_on(root), *out]),
            "search": lambda: _search(root, folder / "found", count),
            _PEER: lambda: seconds_of([*peer_script("json_lines"), str(jsonl)]),
        }
        yield from _compared(run, contestants, count)
        yield _memory("export", [*_on(root), *out], count)
        yield _memory_of_import(run, jsonl, count)


def _compared(run: Run, contestants: dict[str, Contestant], count: int) -> Iterator[Row]:
    times = run.take_turns("rows", contestants)
    peer = f"{times.median(_PEER):.2f} s"
    for name in contestants:
        sides = f"{times.median(name):.2f} s", peer
        ratios = times.ratios(_PEER, name)
        if name == "search":
            what = f"message search -o jsonl with {count:,} hits vs {_PEER} of its rows"
            yield Row(what, *sides, ratios, samples=times.of)
        elif name != _PEER:
            detail = f"{count:,} rows"
            yield row(f"exchange/{name}", sides, ratios, detail=detail, samples=times.of)


def _on(root: Path) -> list[str]:
    return [*rmqctl(), "-S", str(root), "-q"]


def _fill(lines: Path, root: Path, count: int) -> None:
    """Each line begins with a number of ten digits, which is the key."""
    write_lines(lines, count)
    keyed = [*_on(root), "produce", "rows", "--tag", "new", "-K", " ", str(lines)]
    seconds_of(keyed)


def _into_a_new_store(run: Run, *words: str) -> float:
    with run.folder() as folder:
        root = folder / "store"
        MessageStore.create(root)
        return seconds_of([*_on(root), *words])


def _search(root: Path, found: Path, count: int) -> float:
    words = [*_on(root), "message", "search", "o", "--in", "body", "--jobs", "1", "-o", "jsonl"]
    seconds = seconds_of(words, output=found)
    with found.open("rb") as file:
        assert sum(piece.count(b"\n") for piece in iter(partial(file.read, 1 << 20), b"")) == count
    return seconds


def _memory(what: str, command: list[str], count: int) -> Row:
    peak, seconds = peak_of(command)
    return Row(
        f"anonymous memory of message {what}, {count:,} messages",
        f"{peak:.0f} MB",
        f"in {seconds:.1f} s",
        [peak],
        Goal(_LIMIT_MB, at_most=True),
        "MB",
    )


def _memory_of_import(run: Run, file: Path, count: int) -> Row:
    with run.folder() as folder:
        root = folder / "store"
        MessageStore.create(root)
        return _memory("import", [*_on(root), "message", "import", str(file)], count)
