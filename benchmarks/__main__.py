"""``python -m benchmarks``: measures, prints one table, and says which goals were missed."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path

from .report import Missing, Row, table, write_json
from .run import NotMeasurableError, Run, clear_progress, progress, warm_machine

_NAMES = (
    "batch",
    "single",
    "pull",
    "durable",
    "java_store",
    "java_reading",
    "java_broker",
    "java_latency",
    "mqadmin",
    "push",
    "sharing",
    "wakeup",
    "latency",
    "rebalance",
    "delay",
    "recovery",
    "start",
    "shell",
    "memory",
    "desk",
    "report",
    "scale",
    "growth",
)


def main() -> int:
    """Run what the command line asks for; 1 with --strict if a goal is missed."""
    options = _options()
    skipped: dict[str, str] = {}
    rows: list[Row] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="rmqctl-bench-") as directory:
        run = Run(Path(directory), options.rounds, options.quick)
        progress("the machine")("warming up")
        warm_machine(run.directory, (256 << 20) if run.quick else (2 << 30))
        clear_progress()
        for name in options.only or _NAMES:
            try:
                module = importlib.import_module(f"benchmarks.measures.{name}")
                for found in module.measure(run):
                    if isinstance(found, Missing):
                        skipped[found.what] = found.reason
                    else:
                        rows.append(found)
            except NotMeasurableError as error:
                skipped[name] = str(error)
            except ImportError as error:
                ours = ("storage", "broker", "benchmarks")
                if error.name is None or error.name.partition(".")[0] in ours:
                    raise
                skipped[name] = f"{error.name} is not installed"
    print(table(rows))
    for name, reason in skipped.items():
        print(f"not measured: {name}: {reason}")
    missed = [row for row in rows if row.met is False]
    goals = sum(row.met is not None for row in rows)
    print(f"\n{goals - len(missed)} of {goals} goals met, {time.monotonic() - began:.0f} s")
    if options.json is not None:
        write_json(options.json, rows, skipped)
    return 1 if options.strict and (missed or skipped) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=_NAMES,
        metavar="NAME",
        help=f"measure only this (repeatable): {', '.join(_NAMES)}",
    )
    parser.add_argument("--rounds", type=_rounds, default=5, help="rounds, at least 5 (default 5)")
    parser.add_argument("--quick", action="store_true", help="less work a round: a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to FILE")
    parser.add_argument("--dir", type=Path, help="folder to work in (default: the temporary one)")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a goal is missed")
    return parser.parse_args()


def _rounds(text: str) -> int:
    rounds = int(text)
    if rounds < 5:
        raise argparse.ArgumentTypeError("medians need at least 5 rounds")
    return rounds


if __name__ == "__main__":
    sys.exit(main())
