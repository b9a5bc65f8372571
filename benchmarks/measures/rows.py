"""A million messages of 100 B with keys and a tag through ``consume``; whole processes.

Rows stand beside ``jq`` over the same rows, and beside the program ``sqlite3`` printing a table of
the same rows as CSV, by the byte. Templates and columns stand beside ours.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from itertools import count as numbers
from pathlib import Path

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.contest import Contestant, Times
from benchmarks.goals import row
from benchmarks.ours import put_column
from benchmarks.report import Missing, Row
from benchmarks.run import Run
from benchmarks.workload import QUEUES, TOPIC, Column
from storage.store import MessageStore

NAME = "rows"
_BATCH = 1000
_BODY = 100
_FIVE = r"%q:%o %k %T %s\n"
_PATH = "sum>990"


def measure(run: Run) -> Iterator[Row | Missing]:
    count = run.sized(1_000_000, 200_000)
    jq, sqlite = shutil.which("jq"), shutil.which("sqlite3")
    if jq is None:
        yield Missing("rows against jq", "it is not on the path")
    if sqlite is None:
        yield Missing("rows against the program sqlite3", "it is not on the path")
    with run.folder() as folder:
        root = folder / "store"
        _make_store(root, count)
        consume = [*rmqctl(), "-S", str(root), "-q", "consume", TOPIC, "-e"]
        yield from _formats(run, folder, consume, count, sqlite)
        yield from _columns(run, folder, consume, count)
        yield from _templates(run, folder, consume, count)
        if jq is not None:
            yield from _jq(run, folder, consume, count, jq)
        yield from _group(run, folder, root, count)


def _make_store(root: Path, count: int) -> None:
    MessageStore.create(root)
    with MessageStore.open(root, exclusive=True) as store:
        for first in range(0, count, _BATCH):
            here = range(first, min(count, first + _BATCH))
            bodies = [_body(number) for number in here]
            keys = [f"order-{number}" for number in here]
            put_column(store, Column(bodies, [number % QUEUES for number in here], keys))


def _body(number: int) -> bytes:
    """One in a hundred has a ``sum`` above 990; 7919 and 1000 have no common divisor."""
    text = f'{{"id":{number},"sum":{number * 7919 % 1000},"country":"DE","items":[1,2,3],"note":"'
    return f'{text.ljust(_BODY - 2, "x")}"}}'.encode()


def _formats(
    run: Run, folder: Path, consume: list[str], count: int, sqlite: str | None
) -> Iterator[Row]:
    """Each format into a file; ``sqlite3`` prints a table that has our rows."""
    forms = ("jsonl", "csv", "tsv", "yaml")
    files = {form: folder / form for form in forms}
    contestants: dict[str, Contestant] = {
        form: partial(seconds_of, [*consume, "-o", form], output=files[form]) for form in forms
    }
    printed = folder / "printed"
    if sqlite is not None:
        contestants["csv"]()
        database = folder / "rows.db"
        seconds_of([sqlite, str(database), f".import --csv '{files['csv']}' messages"])
        select = [sqlite, "-csv", "-header", str(database), "select * from messages"]
        contestants["sqlite3"] = partial(seconds_of, select, output=printed)
    times = run.take_turns("consume -o", contestants)
    detail = f"{count:,} rows"
    if sqlite is not None:
        for form in ("csv", "tsv"):
            as_many = files[form].stat().st_size / printed.stat().st_size
            ratios = [ratio * as_many for ratio in times.ratios("sqlite3", form)]
            yield row(
                f"rows/{form}",
                _sides(times, form, "sqlite3"),
                ratios,
                detail=detail,
                samples=times.of,
            )
    sides = _sides(times, "yaml", "jsonl")
    yield row("rows/yaml", sides, times.ratios("jsonl", "yaml"), detail=detail)
    for path in (*files.values(), printed):
        path.unlink(missing_ok=True)


def _columns(run: Run, folder: Path, consume: list[str], count: int) -> Iterator[Row]:
    output = folder / "output"
    jsonl = [*consume, "-o", "jsonl"]
    two = [*jsonl, "--columns", "queue_offset,body"]
    times = run.take_turns(
        "consume --columns",
        {
            "all": partial(seconds_of, jsonl, output=output),
            "two": partial(seconds_of, two, output=output),
        },
        rounds=run.more_rounds,
    )
    ratios = times.ratios("all", "two")
    yield row("rows/columns", _sides(times, "two", "all"), ratios, detail=f"{count:,} rows")


def _templates(run: Run, folder: Path, consume: list[str], count: int) -> Iterator[Row]:
    output = folder / "output"
    times = run.take_turns(
        "consume -f",
        {
            "lines": partial(seconds_of, consume, output=output),
            "%s": partial(seconds_of, [*consume, "-f", r"%s\n"], output=output),
            "five": partial(seconds_of, [*consume, "-f", _FIVE], output=output),
        },
        rounds=run.more_rounds,
    )
    for key, name in (("rows/line", "%s"), ("rows/five", "five")):
        sides = _sides(times, name, "lines")
        yield row(key, sides, times.ratios("lines", name), detail=f"{count:,} x 100 B")


def _jq(run: Run, folder: Path, consume: list[str], count: int, jq: str) -> Iterator[Row]:
    rows, bodies = folder / "rows", folder / "bodies"
    seconds_of([*consume, "-o", "jsonl"], output=rows)
    seconds_of(consume, output=bodies)
    ours, theirs = folder / "ours", folder / "theirs"
    select = [jq, "-c", f"select(.{_PATH})", str(bodies)]
    path = [*consume, "--json-path", _PATH]
    times = run.take_turns(
        "consume --json-path",
        {
            "rmqctl": partial(seconds_of, path, output=ours),
            "jq": partial(seconds_of, select, output=theirs),
        },
    )
    assert ours.read_bytes() == theirs.read_bytes()
    detail = f"{count:,} x 100 B"
    ratios = times.ratios("jq", "rmqctl")
    yield row("rows/json-path", _sides(times, "rmqctl", "jq"), ratios, detail=detail)
    times = run.take_turns(
        "consume -o jsonl",
        {
            "rmqctl": partial(seconds_of, [*consume, "-o", "jsonl"], output=ours),
            "jq": partial(seconds_of, [jq, "-c", ".", str(rows)], output=theirs),
        },
    )
    ratios = times.ratios("jq", "rmqctl")
    yield row("rows/jsonl", _sides(times, "rmqctl", "jq"), ratios, detail=f"{count:,} rows")


def _group(run: Run, folder: Path, root: Path, count: int) -> Iterator[Row]:
    """Each round has a new group, which reads all."""
    plain, member = folder / "plain", folder / "member"
    groups = numbers()
    base = [*rmqctl(), "-S", str(root), "-q", "consume", TOPIC, "-e"]

    def consumed() -> float:
        group = ["-g", f"readers-{next(groups)}", "--new-group", "--offset", "start"]
        return seconds_of([*base, *group], output=member)

    times = run.take_turns(
        "consume -g", {"member": consumed, "plain": partial(seconds_of, base, output=plain)}
    )
    printed = subprocess.run(["sort", str(member)], capture_output=True, check=True).stdout
    assert len(printed) == plain.stat().st_size
    ratios = times.ratios("plain", "member")
    yield row("rows/group", _sides(times, "member", "plain"), ratios, detail=f"{count:,} x 100 B")


def _sides(times: Times, ours: str, peer: str) -> tuple[str, str]:
    return f"{times.median(ours):.2f} s", f"{times.median(peer):.2f} s"
