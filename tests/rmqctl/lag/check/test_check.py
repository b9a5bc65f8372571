"""Verdicts, and their text for monitoring systems: pure, with names that mean mischief."""

import itertools
import re

import pytest

from rmqctl.admin.lag.check_rows import CheckResult, Verdict
from rmqctl.admin.lag.limits import Limit, Limits, check
from rmqctl.admin.lag.rows import LagRow
from rmqctl.admin.lag.unknown import Unknown
from rmqctl.lag.check.monitoring import nagios, prometheus
from rmqctl.output.fields import fields_of

NOW = 1_700_000_000_000


def row(group="g", topic="t", lag=0, age=None, status="OK", retry=0, dlq=0, risk=None):
    known = [group, topic, 4, lag, None if lag is None else 100 * lag]
    times = [None if age is None else NOW - age, age, 1.0, None, None, status]
    return LagRow._make([*known, *times, retry, dlq, None, None, 0, risk, 0])


def verdict(limits, **values):
    return check([row(**values)], limits, NOW).verdict


@pytest.mark.feature(130)
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("OK", Verdict.OK),
        ("UNKNOWN", Verdict.UNKNOWN),
        ("WARN", Verdict.WARNING),
        ("REWIND", Verdict.WARNING),
        ("STALL", Verdict.CRITICAL),
        ("STOP", Verdict.CRITICAL),
    ],
)
def test_without_limits_the_health_word_judges(status, expected):
    assert verdict(Limits(), lag=10**9, age=10**9, dlq=10**9, status=status) is expected


@pytest.mark.feature(130)
@pytest.mark.parametrize(
    ("value", "expected"),
    [(10, Verdict.OK), (11, Verdict.WARNING), (20, Verdict.WARNING), (21, Verdict.CRITICAL)],
)
def test_a_limit_is_what_is_still_fine(value, expected):
    limit = Limit(10, 20)
    assert verdict(Limits(lag=limit), lag=value, status="STOP") is expected
    assert verdict(Limits(age=limit), lag=1, age=value) is expected
    assert verdict(Limits(dlq=limit), dlq=value) is expected


@pytest.mark.feature(48, 130)
def test_what_is_not_known_is_not_fine_where_it_was_asked_for():
    assert verdict(Limits(lag=Limit(10)), lag=None) is Verdict.UNKNOWN
    assert verdict(Limits(age=Limit(10)), lag=5, age=None) is Verdict.UNKNOWN
    assert verdict(Limits(age=Limit(10)), lag=0, age=None) is Verdict.OK
    assert verdict(Limits(dlq=Limit(10)), lag=None) is Verdict.OK
    assert check([], Limits(), NOW).verdict is Verdict.UNKNOWN


@pytest.mark.feature(52, 130)
@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (None, Verdict.OK),
        (-5, Verdict.CRITICAL),
        (3600, Verdict.CRITICAL),
        (3601, Verdict.WARNING),
        (7200, Verdict.WARNING),
        (7201, Verdict.OK),
    ],
)
def test_the_nearer_deletion_is_the_worse(left, expected):
    risk = None if left is None else NOW + left
    assert verdict(Limits(risk=Limit(7200, 3600)), lag=5, age=10, risk=risk) is expected
    critical = Verdict.CRITICAL if expected is Verdict.CRITICAL else Verdict.OK
    assert verdict(Limits(risk=Limit(None, 3600)), lag=5, age=10, risk=risk) is critical
    result = check([row(lag=5, age=10, risk=risk)], Limits(), NOW)
    assert (risk is not None) == ("deletion_timestamp_seconds{" in prometheus(result))


@pytest.mark.parametrize("limit", [Limit(7200, 3600), Limit(None, 3600), Limit(7200)])
def test_unread_messages_that_were_deleted_are_past_every_limit_of_a_deletion(limit):
    lost = row(lag=5)._replace(lost=3)
    expected = Verdict.WARNING if limit.crit is None else Verdict.CRITICAL
    [group] = check([lost], Limits(risk=limit), NOW).groups
    assert (group.verdict, group.reasons) == (expected, ["3 unread messages deleted already"])
    assert check([lost], Limits(lag=Limit(10)), NOW).verdict is Verdict.OK


def test_critical_is_worse_than_a_warning_and_a_warning_than_not_knowing():
    words = ["OK", "UNKNOWN", "WARN", "STOP"]
    expected = [Verdict.OK, Verdict.UNKNOWN, Verdict.WARNING, Verdict.CRITICAL]
    for number, worst in enumerate(expected, 1):
        rows = [row(status=status) for status in words[:number]]
        result = check(rows, Limits(), NOW)
        assert (result.verdict, result.code) == (worst, worst.code)
    assert [v.code for v in Verdict] == [0, 1, 2, 3]


NASTY = "%RETRY%a|b'c=d\"e\\f\ng\x1b[31m$(x)"


@pytest.mark.feature(130)
def test_no_name_breaks_a_plug_ins_line():
    limits = Limits(lag=Limit(1, 2))
    text = nagios(check([row(group=NASTY, topic="a|b\n|c", lag=9)], limits, NOW), limits)
    first, *rest = text.splitlines()
    assert len(rest) == 1
    assert first.startswith("LAG CRITICAL - ")
    assert not re.search(r"[\x00-\x1f\x7f]", first + rest[0])
    assert first.count("|") == 1
    assert "|" not in rest[0]
    data = first.partition(" | ")[2]
    labels = re.findall(r"'((?:[^']|'')*)'=([^ ]+)", data)
    assert [value for _, value in labels] == ["9;1;2;0", "U;;;0", "0;;;0"]
    assert all("=" not in label for label, _ in labels)
    assert re.fullmatch(r"(?:'(?:[^']|'')*'=\S+ ?)+", data)


LABELS = re.compile(r'(\w+)="((?:[^"\\]|\\["\\n])*)"(,|$)')


def parsed(text):
    """Samples by name and labels, read as strictly as Prometheus does."""
    samples = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.match(r"# (HELP|TYPE) rmqctl_\w+ ", line)
            continue
        found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        assert found, line
        labels, left = {}, found[2] or ""
        while left:
            pair = LABELS.match(left)
            assert pair, left
            value = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), pair[2])
            labels[pair[1]] = value
            left = left[pair.end() :]
        key = (found[1], *sorted(labels.items()))
        assert key not in samples
        samples[key] = float(found[3])
    return samples


@pytest.mark.feature(131)
def test_prometheus_reads_the_names_that_were_written():
    result = check([row(group=NASTY, topic="t", lag=9, age=1500)], Limits(), NOW)
    samples = parsed(prometheus(result))
    group = ("group", NASTY.replace("\x1b", "\\x1b"))
    assert samples["rmqctl_group_lag_messages", group, ("topic", "t")] == 9
    assert samples["rmqctl_group_oldest_unread_age_seconds", group, ("topic", "t")] == 1.5
    assert samples["rmqctl_group_dlq_messages", group] == 0
    assert samples["rmqctl_group_status", group, ("status", "OK"), ("topic", "t")] == 1
    assert samples["rmqctl_group_status", group, ("status", "STOP"), ("topic", "t")] == 0


@pytest.mark.feature(48, 131)
def test_what_is_not_known_has_no_sample_and_a_groups_own_numbers_stand_once():
    rows = [row(topic=topic, lag=None, dlq=3, status="UNKNOWN") for topic in ("a", "b")]
    samples = parsed(prometheus(check(rows, Limits(), NOW)))
    names = [name for name, *_ in samples]
    assert "rmqctl_group_lag_messages" not in names
    assert names.count("rmqctl_group_dlq_messages") == 1
    assert names.count("rmqctl_group_unknown_queues") == 2
    assert samples[("rmqctl_check_code",)] == 3


def test_what_is_known_in_part_has_no_time_of_deletion_and_a_doubt_no_status_ok():
    one = row(lag=5, age=10, risk=NOW + 8)
    unknown = {("g", "t"): Unknown(["why"])}
    for result in (
        check([one], Limits(), NOW, unknown),
        check([one], Limits(), NOW, doubt="no clock"),
        check([one], Limits(dlq=Limit(5)), NOW, doubt="no clock"),
    ):
        assert "deletion_timestamp_seconds{" not in prometheus(result)
    samples = parsed(prometheus(check([one], Limits(), NOW, doubt="no clock")))
    status = {dict(key[1:])["status"]: v for key, v in samples.items() if key[0][-7:] == "_status"}
    assert {word for word, value in status.items() if value} == {"UNKNOWN"}


def test_a_summary_names_the_worst_three():
    rows = [row(group=f"g{n}", status="WARN") for n in range(4)] + [row("bad", status="STOP")]
    summary = check(rows, Limits(), NOW).summary
    assert summary.startswith("bad in t: status STOP; ")
    assert summary.endswith("; 2 more")


def test_each_value_past_its_limit_is_a_reason_that_names_the_limit():
    limits = Limits(Limit(10, 2000), Limit(1000), Limit(1, 100), Limit(120_000))
    one = row(lag=1234, age=90_000, dlq=2000, risk=NOW + 60_000)
    (group,) = check([one], limits, NOW).groups
    assert group.reasons == [
        "lag 1,234 messages (limit 10)",
        "age 1m30s (limit 1s)",
        "2,000 dead letters (limit 100)",
        "unread messages are deleted in 1m",
    ]
    assert group.verdict is Verdict.CRITICAL
    (group,) = check([row(risk=NOW - 1)], limits, NOW).groups
    assert group.reasons == ["unread messages are deleted in 0ms"]


def test_values_come_from_the_row():
    values = {"lag": 5, "age": 70, "status": "WARN", "retry": 6, "dlq": 7, "risk": NOW + 8}
    one = row("a", "b", **values)._replace(rate_out=2.0, lost=9, unknown_queues=3)
    (group,) = check([one], Limits(), NOW).groups
    assert (group.group, group.topic, group.status) == ("a", "b", "WARN")
    assert (group.lag, group.lag_bytes, group.oldest_unread_age_ms) == (5, 500, 70)
    assert (group.rate_in, group.rate_out) == (one.rate_in, 2.0)
    assert (group.retry, group.dlq, group.lost) == (6, 7, 9)
    assert (group.risk_timestamp, group.unknown_queues) == (NOW + 8, 3)
    assert group.unknown == ["3 of 4 queues not in the sums"]


def test_an_unknown_value_is_a_reason_where_a_limit_asks_for_it():
    (group,) = check([row(lag=None)], Limits(lag=Limit(10), age=Limit(10)), NOW).groups
    assert group.reasons == ["lag unknown", "age unknown"]
    (group,) = check([row(lag=0)], Limits(age=Limit(10)), NOW).groups
    assert (group.verdict, group.reasons) == (Verdict.OK, [])


@pytest.mark.parametrize(
    ("limits", "reasons"),
    [
        (Limits(lag=Limit(10)), ["why lag"]),
        (Limits(risk=Limit(10)), ["why lag", "why risk"]),
        (Limits(age=Limit(10)), ["why lag", "why age"]),
        (Limits(risk=Limit(None, 10)), ["why lag", "why risk"]),
        (Limits(dlq=Limit(10)), []),
        (Limits(), ["status OK", "why lag"]),
    ],
)
def test_unknown_parts_count_for_the_limits_that_they_concern(limits, reasons):
    unknown = {("g", "t"): Unknown(["why lag"], ["why age"], ["why risk"])}
    result = check([row(lag=1, age=1)], limits, NOW, unknown)
    expected = Verdict.UNKNOWN if reasons else Verdict.OK
    assert result.groups[0].reasons == [one for one in reasons if one != "status OK"]
    assert result.groups[0].unknown == ["why lag", "why age"]
    assert (result.verdict, result.groups[0].verdict) == (expected, expected)
    assert check([row("other", lag=1, age=1)], limits, NOW, unknown).verdict is Verdict.OK


def test_what_is_critical_stays_critical_and_a_warning_becomes_unknown_by_an_unknown_part():
    limits = Limits(lag=Limit(10, 20))
    unknown = {("g", "t"): Unknown(["why"], [])}
    for lag, expected in ((5, Verdict.UNKNOWN), (15, Verdict.UNKNOWN), (25, Verdict.CRITICAL)):
        assert check([row(lag=lag)], limits, NOW, unknown).verdict is expected
    rows = [row(lag=15, group="late"), row(lag=5)]
    assert check(rows, limits, NOW, {}).verdict is Verdict.WARNING
    assert check(rows, limits, NOW, unknown).verdict is Verdict.UNKNOWN, "it may hide worse"
    words = [row(status="WARN"), row(status="UNKNOWN")]
    assert check(words, Limits(), NOW).verdict is Verdict.WARNING


def test_a_doubt_about_all_progress_makes_every_group_unknown():
    result = check([row(), row("h")], Limits(), NOW, doubt="no clock")
    assert result.verdict is Verdict.UNKNOWN
    assert [group.reasons for group in result.groups] == [["no clock"]] * 2
    assert [group.status for group in result.groups] == ["UNKNOWN"] * 2
    assert check([row(status="STOP")], Limits(), NOW, doubt="no clock").groups[0].status == "STOP"
    assert check([], Limits(), NOW, doubt="no clock").summary == (
        "no group has any progress: no clock"
    )
    assert check([], Limits(), NOW).summary == "no group has any progress"


def test_a_summary_without_a_problem_counts_messages_and_says_what_is_not_in_them():
    assert check([row(lag=1)], Limits(), NOW).summary == "1 group in their topics, 1 message unread"
    result = check([row(lag=1500), row("h", lag=None)], Limits(dlq=Limit(1)), NOW)
    assert result.summary == "2 groups in their topics, 1,500 messages unread"
    unknown = {(f"g{n}", "t"): Unknown(["why"], []) for n in range(4)}
    rows = [row(f"g{n}", lag=10) for n in range(4)]
    assert check(rows, Limits(dlq=Limit(1)), NOW, unknown).summary == (
        "4 groups in their topics, at least 40 messages unread (g0, g1, g2: partly unknown)"
    )


def test_a_summary_names_the_reasons_of_each_group():
    limits = Limits(lag=Limit(1), dlq=Limit(1))
    assert check([row(lag=9, dlq=9)], limits, NOW).summary == (
        "g in t: lag 9 messages (limit 1), 9 dead letters (limit 1)"
    )


@pytest.mark.feature(48, 130)
def test_the_verdict_over_all_groups_is_the_worst_in_the_order_that_its_field_names():
    (meaning,) = [field.help for field in fields_of(CheckResult) if field.name == "verdict"]
    plain, limited = (re.findall("[A-Z]{2,}", part) for part in meaning.split("; with limits"))
    statuses = {"CRITICAL": "STOP", "WARNING": "WARN", "UNKNOWN": "UNKNOWN", "OK": "OK"}
    lags = {"CRITICAL": 30, "WARNING": 20, "UNKNOWN": None, "OK": 0}
    assert sorted(plain) == sorted(limited) == sorted(statuses)
    limits = Limits(lag=Limit(10, 20))
    for worse, better in itertools.combinations(plain, 2):
        rows = [row(status=statuses[word]) for word in (better, worse)]
        assert check(rows, Limits(), NOW).verdict == Verdict[worse]
    for worse, better in itertools.combinations(limited, 2):
        rows = [row(lag=lags[word]) for word in (better, worse)]
        assert check(rows, limits, NOW).verdict == Verdict[worse]
