"""``python -m analytics``: the report as JSON, for spark-submit and for machines without rmqctl.

    spark-submit --py-files rmqctl.zip analytics/__main__.py '/disks/*/store' --group readers
    python -m analytics --engine local /data/store

The Spark that spark-submit has started is used; without one, one is started here. The JSON is that
of ``rmqctl lag report -o json``, and nothing else is printed: spark-submit mixes both streams. The
exit code is 0, or 8 if some stores could not be read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from analytics.engines.local import LocalEngine
from analytics.errors import AnalyticsError
from analytics.lag.selection import Choice
from analytics.report.lag_report import lag_report
from analytics.report.stores import find_stores

if TYPE_CHECKING:
    from analytics.engines import Engine

PARTLY: Final = 8
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has a JVM running."""


def main(words: Sequence[str] | None = None) -> int:
    """Make the report that the arguments request and print it."""
    asked = _parser().parse_args(words)
    began = time.monotonic()
    try:
        refs = find_stores(asked.store)
        as_of = time.time_ns() // 1_000_000 if asked.as_of is None else asked.as_of
        choice = Choice(asked.group, asked.topic, asked.include_retry)
        with _engine(asked.engine, asked.master) as engine:
            made = lag_report(engine, refs, as_of, choice, exact=asked.exact)
            name = engine.name
    except AnalyticsError as error:
        sys.stderr.write(f"analytics: {error}\n")
        return 1
    elapsed_ms = round((time.monotonic() - began) * 1000)
    fields = made.report.document()
    document = {"as_of": fields.pop("as_of"), "engine": name, **fields, "elapsed_ms": elapsed_ms}
    # All but ASCII is escaped: a name may be no text, and the locale may know no other letters.
    sys.stdout.write(f"{json.dumps(document, indent=2)}\n")
    return PARTLY if made.unreadable or made.is_damaged else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m analytics", description="How late groups are")
    parser.add_argument("store", nargs="+", help="folders, patterns, YAML lists")
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--master", help="Spark's master, if none is running yet")
    parser.add_argument("--group", action="append", help="only this group; repeatable")
    parser.add_argument("--topic", action="append", help="only this topic; repeatable")
    parser.add_argument("--include-retry", action="store_true", help="retry topics, too")
    parser.add_argument("--as-of", type=int, metavar="MS", help="count ages from this epoch ms")
    parser.add_argument("--exact", action="store_true", help="read each record")
    return parser


@contextmanager
def _engine(name: str, master: str | None) -> Iterator[Engine]:
    if name == "local":
        yield LocalEngine()
        return
    from analytics.engines.spark import SparkEngine

    if _SUBMITTED in os.environ:
        from pyspark import SparkContext

        context = SparkContext.getOrCreate()
        yield SparkEngine(context)
        context.stop()
        return
    from analytics.spark.session import LOCAL, SparkSession

    with SparkSession(master or LOCAL) as session:
        yield SparkEngine(session.context)


if __name__ == "__main__":
    sys.exit(main())
