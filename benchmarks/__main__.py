"""``python -m benchmarks``: measures, prints one table, and names the missed goals."""

from __future__ import annotations

import argparse
import importlib
import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import java_peer
from .document import Finding, Session, command_shown, write_document
from .machine import compile_packages, shape, versions
from .page_update import PageError, update_document
from .report import Missing, table, write_json
from .run import NotMeasurableError, Run, clear_progress, progress, warm_machine

_NAMES = (
    "batch",
    "single",
    "pull",
    "mixed",
    "put_get",
    "durable",
    "java_store",
    "java_reading",
    "java_broker",
    "java_retry",
    "java_latency",
    "java_started",
    "mqadmin",
    "push",
    "sharing",
    "wakeup",
    "latency",
    "load",
    "rebalance",
    "delay",
    "recovery",
    "rebuild",
    "carve",
    "fsck",
    "start",
    "commands",
    "shell",
    "exchange",
    "rows",
    "memory",
    "desk",
    "console",
    "console_large",
    "console_screens",
    "report",
    "spark_source",
    "spark_planning",
    "scale",
    "growth",
    "platform",
)

_QUICK = (
    "batch",
    "single",
    "pull",
    "durable",
    "java_store",
    "java_reading",
    "java_broker",
    "java_latency",
    "mqadmin",
    "start",
    "shell",
)
"""Measures with goals against peers; three minutes together."""


def main() -> int:
    """Run the requested measures; 1 if one breaks, or with --strict if a goal is missed.

    Ctrl-C ends it with the table of what was measured until then; no document is written.
    """
    options = _options()
    # Flow control logs its pauses; they are expected here.
    logging.getLogger("rmqctl.client.pull").setLevel(logging.ERROR)
    names = options.only or (_QUICK if options.quick else _NAMES)
    began = time.monotonic()
    findings: dict[str, Finding] = {}
    missing: dict[str, str] = {}
    broken: dict[str, str] = {}
    ended_early = False
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="rmqctl-bench-") as directory:
        run = Run(Path(directory), options.rounds, options.quick)
        where = shape(run.directory)
        progress("the machine")("warming up")
        compile_packages()
        warm_machine(run.directory, (256 << 20) if run.quick else (2 << 30))
        clear_progress()
        for name in names:
            try:
                findings[name] = _measured(name, run, missing)
            except NotMeasurableError as error:
                missing[name] = str(error)
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                broken[name] = f"broke: {error!r}"  # other measures go on
            except KeyboardInterrupt:  # what was measured in an hour is shown
                ended_early = True
                clear_progress()
                break
    rows = [row for finding in findings.values() for row in finding.rows]
    print(table(rows))
    for name, reason in (missing | broken).items():
        print(f"not measured: {name}: {reason}")
    missed = [row for row in rows if row.met is False]
    goals = sum(row.met is not None for row in rows)
    print(f"\n{goals - len(missed)} of {goals} goals met, {time.monotonic() - began:.0f} s")
    if options.json is not None:
        write_json(options.json, rows, missing | broken)
    if ended_early:
        left = [name for name in names if name not in findings | missing | broken]
        print(f"ended early, not measured: {', '.join(left)}", file=sys.stderr)
        return 130
    session = Session(
        findings=findings,
        missing=missing | broken,
        shape=where,
        versions=versions(java_peer.VERSION),
        command=command_shown(sys.argv[1:]),
        rounds=options.rounds,
        quick=options.quick,
        ended=time.time(),
    )
    if options.document is not None:
        write_document(options.document, session)
    if options.update is not None:
        try:
            update_document(options.update, session)
        except PageError as error:
            print(f"{options.update} is as it was: {error}", file=sys.stderr)
            return 1
    return 1 if broken or (options.strict and (missed or missing)) else 0


def _measured(name: str, run: Run, missing: dict[str, str]) -> Finding:
    """Run a measure; adds to ``missing`` what it could not compare with."""
    start = time.monotonic()
    try:
        module = importlib.import_module(f"benchmarks.measures.{name}")
        rows = []
        for found in module.measure(run):
            if isinstance(found, Missing):
                missing[found.what] = found.reason
            else:
                rows.append(found)
    except ImportError as error:
        ours = ("storage", "broker", "client", "rmqctl", "analytics", "benchmarks", "tests")
        if error.name is None or error.name.partition(".")[0] in ours:
            raise
        raise NotMeasurableError(f"{error.name} is not installed") from None
    about = (module.__doc__ or "").partition("\n\n")[0].strip()
    return Finding(rows, time.monotonic() - start, about)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=_NAMES,
        metavar="NAME",
        help=f"measure only this (repeatable): {', '.join(_NAMES)}",
    )
    parser.add_argument("--rounds", type=int, help="rounds, at least 5 (--quick: 3), the default")
    parser.add_argument("--quick", action="store_true", help="the goals only, with less work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to FILE")
    parser.add_argument("--document", type=Path, metavar="FILE", help="write the page of tables")
    parser.add_argument(
        "--update", type=Path, metavar="FILE", help="replace the tables of --only in such a page"
    )
    parser.add_argument("--dir", type=Path, help="folder to work in (default: the temporary one)")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a goal is missed")
    options = parser.parse_args()
    least = 3 if options.quick else 5
    if options.rounds is None:
        options.rounds = least
    if options.rounds < least:
        parser.error(f"medians need at least {least} rounds")
    if options.update is not None and (options.quick or not options.only):
        parser.error("--update needs --only, and no --quick")
    return options


if __name__ == "__main__":
    sys.exit(main())
