"""``python -m tests.mutants``: how many wrong changes of the rule modules the tests find.

modules.toml names the modules and the tests that protect each. survivors.toml has a reason for each
mutant of the sample that no test finds. Exit code 1: another one survives, or less than 90 % are
found.
"""

from __future__ import annotations

import argparse
import ast
import sys
import time
from typing import Final

from tests.mutants.kept import keep, load_kept
from tests.mutants.mutations import mutants_of, sample
from tests.mutants.report import Row, Rule, load_reasons, load_rules, sum_of, table, write
from tests.mutants.runner import ROOT, BaselineFailed, Outcome, run_module

_LEAST_SCORE: Final = 0.9


def main(arguments: list[str] | None = None) -> int:
    options = _options().parse_args(arguments)
    rules = [rule for rule in load_rules() if not options.module or rule.path in options.module]
    if options.list:
        for rule in rules:
            for mutant in mutants_of(ast.parse((ROOT / rule.path).read_bytes())):
                print(f"{rule.path}  {mutant.name}")
        return 0
    reasons = load_reasons()
    end = time.monotonic() + options.minutes * 60
    rows = []
    for rule in rules:
        size = None if options.all else options.sample
        row = (options.kept and load_kept(rule, size)) or _measured(rule, size, end)
        rows.append(row)
        print(f"{rule.path}: {row.killed} of {row.run} mutants killed ({row.seconds:.0f} s)")
        for name in row.survivors:
            if name not in reasons.get(rule.path, {}):
                print(f"  survived: {name}")
        sys.stdout.flush()
    print(table(rows), end="")
    if options.write:
        write(rows, reasons, None if options.all else options.sample)
    problems = _problems(rows, reasons, whole=options.all)
    if not options.module and sum_of(rows).score < _LEAST_SCORE:
        problems.append(f"{sum_of(rows).score:.1%} of all mutants are killed, 90 % at least")
    for problem in problems:
        print(f"mutants: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--all", action="store_true", help="each mutant, not a sample")
    parser.add_argument("--sample", type=int, default=20, help="mutants of a module (20)")
    parser.add_argument("--minutes", type=float, default=10, help="ends after so long (10)")
    parser.add_argument("--module", action="append", help="only this one: storage/retention.py")
    parser.add_argument(
        "--kept",
        action="store_true",
        help="take results of runs before, of modules that did not change, nor their tests",
    )
    parser.add_argument("--write", action="store_true", help="the tables of docs/quality.md")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    return parser


def _measured(rule: Rule, size: int | None, end: float) -> Row:
    started = time.monotonic()
    mutants = mutants_of(ast.parse((ROOT / rule.path).read_bytes()))
    chosen = list(range(len(mutants))) if size is None else sample(mutants, size)
    outcomes = {}
    try:
        for verdict in run_module(rule.path, rule.tests, rule.seconds, chosen, end):
            outcomes[verdict.mutant] = verdict.outcome
    except BaselineFailed as failed:
        sys.exit(f"mutants: the tests of {rule.path} fail without a mutant: {failed}")
    row = Row(
        rule.path,
        len(mutants),
        len(outcomes),
        sum(outcome is not Outcome.SURVIVED for outcome in outcomes.values()),
        [mutants[at].name for at in sorted(outcomes) if outcomes[at] is Outcome.SURVIVED],
        time.monotonic() - started,
        len(chosen) - len(outcomes),
    )
    keep(rule, size, row)
    return row


def _problems(rows: list[Row], reasons: dict[str, dict[str, str]], *, whole: bool) -> list[str]:
    found = []
    for row in rows:
        known = reasons.get(row.path, {})
        unknown = sum(name not in known for name in row.survivors)
        if unknown and not whole:
            found.append(f"{row.path}: {unknown} survivors have no reason in survivors.toml")
        if row.left_out:
            found.append(f"{row.path}: {row.left_out} mutants were not run in time")
        if whole and not row.left_out:
            found += [
                f"{row.path}: survivors.toml names a mutant that is killed or gone: {name}"
                for name in known
                if name not in row.survivors
            ]
    return found


if __name__ == "__main__":
    raise SystemExit(main())
