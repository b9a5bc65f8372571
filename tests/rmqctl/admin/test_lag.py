"""The lag of groups through the library: no command line, no EmbeddedBroker."""

import pytest

from analytics.lag.histogram import Ages
from analytics.lag.selection import Choice
from rmqctl.admin import lag, offsets
from rmqctl.admin.changes import journal_note
from rmqctl.errors import CliError, NotFound
from storage.retention import rules_of
from tests.support.kept_reports import DAY_MS, OLD, run as keep

START = 1_767_225_600_000
MINUTE = 60_000
NOW = START + 60 * MINUTE
ALL = Choice()


@pytest.fixture
def look(asked):
    return lambda choice=ALL: lag.look(asked.view, asked.broker, NOW, choice)


def test_one_snapshot_gives_rows_by_group_topic_and_queue(look):
    seen = look(Choice(["g"], ["orders"]))
    [row] = lag.group_rows(seen)
    assert (row.group, row.topic, row.lag, row.unknown_queues) == ("g", "orders", 5, 1)
    assert row.oldest_unread_age_ms == 55 * MINUTE
    [topic] = lag.topic_rows(seen)
    assert (topic.groups, topic.lag) == (1, 5)
    assert [queue.lag for queue in lag.queue_rows(seen)] == [5, None]
    with pytest.raises(NotFound):
        look(Choice(["h"]))
    with pytest.raises(NotFound):
        look(Choice(None, ["nope"]))


def test_what_is_unknown_is_said_and_judged(look):
    seen = look()
    [sentence] = lag.unknown_sentences(seen)
    assert sentence.startswith("group g in orders: ")
    assert lag.unknown_of(seen)["g", "orders"].lag
    limits = lag.Limits(lag.Limit(warn=1, crit=3))
    judged = lag.check(lag.group_rows(seen), limits, NOW, lag.unknown_of(seen))
    assert (str(judged.verdict), judged.code) == ("CRITICAL", 2)
    assert lag.check([], limits, NOW).code == 3


def test_a_backlog_is_counted_by_age_size_and_name(asked, look):
    parts = lag.parts_of(look().group_lags)
    found = Ages(asked.view, parts, NOW).buckets([56 * MINUTE, 58 * MINUTE])
    rows = lag.bucket_rows(found, lag.age_label)
    assert [(row.bucket, row.messages) for row in rows] == [("< 56m", 5)]
    assert lag.size_label(1024) == "1K"
    rows, read = lag.name_rows(asked.view, parts, lambda m: (m.topic,), 5, lambda _: None)
    assert ([(row.bucket, row.messages) for row in rows], read) == ([("orders", 5)], 5)


def test_nothing_is_at_risk_in_a_young_log_where_all_progress_is_known(asked, look):
    rules = rules_of(asked.view.root, asked.view.config, None)
    [row] = lag.risk_rows(asked.view, look(), rules, MINUTE)
    assert (row.group, row.topic, row.unknown_queues) == ("g", "orders", 1)
    assert (row.lost, row.at_risk, row.at_risk_bytes, row.risk_timestamp) == (None,) * 4
    move = offsets.reset(
        asked.view, asked.broker, offsets.to_latest, groups=["g"], topics=None, now_ms=NOW
    )
    move.apply(journal_note("test"))
    assert list(lag.risk_rows(asked.view, look(), rules, MINUTE)) == []


def test_what_was_recorded_with_doubtful_progress_is_unknown(look, tmp_path):
    seen = look(Choice(["g"], ["orders"]))
    [row] = lag.group_rows(seen)
    row = row._replace(unknown_queues=0)
    file = tmp_path / "lags.jsonl"
    lag.record(file, [row], START, "no clock")
    recorded = lag.read_recorded(file)
    assert recorded is not None
    assert (recorded.doubt, recorded.lags["g", "orders"]) == ("no clock", (None, None))
    [compared] = lag.compare([row], lag.earlier_of([row], START), "no clock")
    assert (compared.lag_then, compared.lag, compared.lag_change) == (5, 5, None)


def test_a_watcher_compares_readings_until_nothing_is_left(asked):
    watcher = lag.Watcher(asked.view, asked.broker, Choice(), NOW)
    seen = watcher.look(NOW)
    assert (lag.left(seen), [row.change for row in watcher.rows(seen, with_rates=False)]) == (
        lag.Left.SOME,
        [None],
    )
    move = offsets.reset(
        asked.view, asked.broker, offsets.to_latest, groups=["g"], topics=None, now_ms=NOW
    )
    move.apply(journal_note("test"))
    seen = watcher.look(NOW + 20_000)
    assert lag.left(seen) is lag.Left.NOTHING
    assert [row.change for row in watcher.rows(seen, with_rates=True)] == [-5]
    lag.check_known(seen)
    none = lag.look(asked.view, asked.broker, NOW, Choice(None, ["TBW102"]))
    with pytest.raises(CliError, match="no group has any progress"):
        lag.check_known(none)
    assert lag.needed(2, 10.0, 4.0) == 5


def test_lag_is_recorded_read_back_and_compared(look, tmp_path):
    rows = list(lag.group_rows(look(Choice(["g"], ["orders"]))))
    earlier = lag.earlier_of([rows[0]._replace(lag=2, unknown_queues=0)], START)
    [row] = lag.compare([rows[0]._replace(unknown_queues=0)], earlier)
    assert (row.group, row.topic, row.status) == ("g", "orders", rows[0].status)
    assert row[2:5] == (2, 5, 3)
    [unknown] = lag.compare(rows, earlier)
    assert unknown[2:5] == (2, 5, None), "a part of it is unknown now"
    file = tmp_path / "lags.jsonl"
    assert lag.record(file, [rows[0]._replace(unknown_queues=0)], START) == 1
    recorded = lag.read_recorded(file)
    assert recorded is not None
    assert recorded.as_of == START
    assert recorded.lags["g", "orders"].lag == 5
    assert lag.read_recorded(file, START - 1) is None


@pytest.mark.slow
def test_kept_reports_are_joined_as_a_change(tmp_path):
    for day in (0, 1):
        keep(tmp_path / "history", OLD + day * DAY_MS, {"a": 3, "b": 4})
    change = lag.compact(tmp_path / "history")
    assert {(row.files, row.joined_files) for row in change.plan} == {(4, 1)}
    assert change.summary == ("32 files become 8",)
    assert all(row.applied for row in change.apply({}).rows)
    assert not lag.compact(tmp_path / "history").plan
