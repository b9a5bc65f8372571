"""Gather the lag of all groups each night, as Parquet; no Spark is needed.

    python examples/nightly.py ./gathered '/disks/*/store'
    15 2 * * *  python /opt/nightly.py /var/lib/lag '/disks/*/store'      # in cron

It keeps a report of all stores, joins the files of past days, and prints how the lag has gone since
the first day. What it keeps can be read by anything that reads Parquet:

    spark.read.parquet("gathered/groups")
    duckdb.sql("select * from read_parquet('gathered/groups/*/*.parquet')")
    pandas.read_parquet("gathered/groups")

and by rmqctl: lag report --from-partials gathered -o html --save lag.html

Stores may be in use; they are read only. One that cannot be read is named, the others are kept, and
the exit code is 8. Run again after a crash, it does what is left.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from analytics.engines.local import LocalEngine
from analytics.history.daily import days_of
from analytics.history.keeping import keep
from analytics.lag.selection import Choice
from analytics.report.lag_report import lag_report
from analytics.report.stores import find_stores
from rmqctl.admin import lag
from rmqctl.admin.changes import journal_note

PARTLY = 8


def gather(folder: Path, stores: Sequence[str], now_ms: int) -> int:
    """Keep a report of this moment; return how many stores could not be read."""
    made = lag_report(LocalEngine(), find_stores(stores), now_ms, Choice())
    places = [(row["group"], row["topic"]) for row in made.report.groups]
    files = keep(made.shares, now_ms, folder, places, begin=None)
    print(f"kept the reports of {len(made.shares)} stores in {files} files")
    for store in made.unreadable:
        print(f"{store.ref.broker}: not read: {store.reason}")
    return len(made.unreadable)


def join_past_days(folder: Path, now_ms: int) -> None:
    """Make one file of all files of a table and day: each broker writes ten in a night."""
    change = lag.compact(folder, by_day=True, now_ms=now_ms, warn=print)
    rows = list(change.apply(journal_note("nightly")).rows)
    if rows:
        files, joined = sum(row.files for row in rows), sum(row.joined_files for row in rows)
        print(f"joined {files} files of past days into {joined}")


def show(folder: Path, now_ms: int) -> None:
    """Print the lag of each day."""
    for row in days_of([str(folder)], Choice(), now_ms).days:
        day = time.strftime("%Y-%m-%d", time.gmtime(row["day_timestamp"] / 1000))
        known = "unknown" if row["lag"] is None else row["lag"]
        print(f"{day}: lag {known} of {row['groups']} groups in {row['stores']} stores")


def main(words: Sequence[str]) -> int:
    """Gather, join, show."""
    if len(words) < 2:
        print("usage: nightly.py FOLDER STORE...", file=sys.stderr)
        return 2
    folder, now_ms = Path(words[0]), time.time_ns() // 1_000_000
    unread = gather(folder, words[1:], now_ms)
    join_past_days(folder, now_ms)
    show(folder, now_ms)
    return PARTLY if unread else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
