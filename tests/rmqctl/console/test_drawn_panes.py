"""Drawn panes, line by line: from numbers to text, at the widths of 80x24 and 140x40."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from rmqctl.admin.lag.backlog_rows import RiskRow
from rmqctl.admin.lag.rows import LagQueueRow, LagRow
from rmqctl.admin.retries.rows import AgendaRow
from rmqctl.admin.topics.rows import TopicQueueRow
from rmqctl.console import attention, charts, health, overview, topic_pane
from rmqctl.console.agenda import hour_lines
from rmqctl.console.attention import AttentionRow
from rmqctl.console.drawing import Role, width_of
from rmqctl.console.group_pane import figures, trend_lines
from rmqctl.console.heatmap import map_lines
from rmqctl.console.looks import groups, retries
from rmqctl.console.looks.agenda import EACH
from rmqctl.console.looks.history import NO_LOOK, SLOTS, STEP_MS, LagHistory, added
from rmqctl.console.looks.look import Place
from rmqctl.console.reading import Asked, Batch
from rmqctl.console.screens.overview import ATTENTION
from rmqctl.console.screens.table import spec_of
from rmqctl.console.tables import RowTable
from rmqctl.output.cells import cells_of
from rmqctl.output.view import Format, View
from storage.configs.offset_samples import SampleHistory

NOW = int(datetime(2026, 11, 25, 14, 0, tzinfo=UTC).timestamp() * 1000)


def texts(lines):
    return ["".join(span.text for span in line).rstrip() for line in lines]


def lag_row(group="billing", topic="orders", status="OK", lag=0, **more):
    row = LagRow(
        *(group, topic, 8, lag, 0, None, 60_000 if lag else None, 2.0, 1.0, None),
        *(status, 3, 5, None, None, 0, None, 0),
    )
    return row._replace(**more)


def queue_row(queue, lag, topic="orders", committed=0, end=None, status="OK"):
    end = (lag or 0) + (committed or 0) if end is None else end
    return LagQueueRow(
        *("billing", topic, queue, 0, committed, end, lag, None, None, None, None, None, None),
        *(status, 0, None),
    )


# Charts


def test_zero_is_drawn_unknown_is_a_question_mark_and_no_look_is_blank():
    assert charts.spark([NO_LOOK, None, 0, 1, 50, 100], 6) == " ?\u2581\u2581\u2584\u2588"
    assert charts.spark([], 4) == "    "
    assert charts.spark([5], 3) == "\u2588\u2588\u2588"


def test_columns_of_several_lines():
    assert charts.columns([0, 1, 8, 16, None], 2) == [
        "   \u2588 ",
        "\u2581\u2581\u2588\u2588?",
    ]


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("height", [1, 2, 4])
def test_a_trend_is_as_wide_and_high_as_it_has_to_be(width, height):
    lines = charts.trend([NO_LOOK] * 60 + list(range(60)), width, height)
    assert [cells_of(line) for line in lines] == [width] * height
    assert lines[-1].startswith("    0 \u2524" if height > 1 else "   59 \u2524")


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "?"), (0, "0"), (999, "999"), (1000, "1k"), (1500, "1.5k"), (812_004, "812k"),
     (10**15, "1P")],
)  # fmt: skip
def test_short_numbers(number, text):
    assert charts.short(number) == text


def test_bars():
    assert charts.bar(None, 10) == "?"
    assert charts.bar(0, 10) == ""
    assert charts.bar(0.00001, 10) == "\u258f"
    assert charts.bar(0.5, 4, filled_up=True) == "\u2588\u2588\u2591\u2591"
    assert charts.bar(7, 3) == "\u2588" * 3


def test_spans():
    assert charts.span([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"


# The map of queues

QUEUES = [
    *(queue_row(n, lag) for n, lag in enumerate([0, 1, 999, 1_000, 10_000, 100_000])),
    queue_row(6, None, committed=None, end=4),
    queue_row(7, None, committed=None, end=0),
    queue_row(8, None, committed=9, end=4, status="WARN"),
    queue_row(0, 0, topic="%RETRY%billing"),
]


@pytest.mark.feature(155)
@pytest.mark.parametrize("width", [80, 140])
def test_a_map_has_a_cell_for_each_queue(width):
    assert texts(map_lines(QUEUES, width, 4)) == [
        "  orders                 0-8  \u00b7 \u2591 \u2591 \u2592 \u2593 \u2588 x \u00b7 ?",
        "  %RETRY%billing           0  \u00b7",
    ]


def test_a_map_says_how_many_queues_have_no_room():
    rows = [queue_row(n, 0) for n in range(100)]
    assert texts(map_lines(rows, 80, 3)) == [
        "  orders                0-24 " + " \u00b7" * 25,
        "  orders               25-49 " + " \u00b7" * 25,
        "  \u2026 50 of 100 queues more",
    ]
    at = ("billing", "orders", 80)
    shown = map_lines(rows, 80, 3, at)
    assert texts(shown)[1].startswith("  orders               75-99")
    assert [span for line in shown for span in line if span.role is Role.CURSOR]


# One group


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (
            80,
            " LAG >=812,004  oldest >=41m  in 214.0/s out 1.0/s  drains never  retry 3",
        ),
        (
            140,
            " LAG >=812,004  oldest >=41m  in 214.0/s out 1.0/s  drains never  retry 3  dlq 5"
            "  RISK in 5h10m",
        ),
    ],
)
def test_figures_of_a_group(width, text):
    rows = [
        lag_row(lag=812_004, rate_in=212.0, oldest_unread_age_ms=2_460_000,
                risk_timestamp=NOW + 18_600_000),
        lag_row(topic="mails", lag=None, rate_out=0.0),
    ]  # fmt: skip
    line = figures(rows, width, NOW)
    assert width_of(line) <= width
    assert texts([line])[0].removesuffix("\u2026").rstrip() == text


def test_unknown_figures_are_question_marks():
    row = lag_row(lag=None, rate_in=None, rate_out=None, retry=None, oldest_unread_age_ms=None)
    assert texts([figures([row], 80, NOW)]) == [
        " LAG ?  oldest ?  in ?/s out ?/s  drains ?  retry ?  dlq 5"
    ]


def test_the_oldest_message_of_a_group_is_unknown_where_that_of_one_topic_is():
    known = lag_row(lag=5, oldest_unread_age_ms=60_000)
    unread = lag_row(topic="mails", lag=3, oldest_unread_age_ms=None)
    for rows, text in (
        ([known], "oldest 1m  "),
        ([lag_row(lag=0)], "oldest -  "),
        ([unread], "oldest ?  "),
        ([known, unread], "oldest >=1m  "),
        ([known._replace(unknown_queues=1)], "oldest >=1m  "),
        ([known, lag_row(topic="mails", lag=0)], "oldest 1m  "),
    ):
        assert text in texts([figures(rows, 120, NOW)])[0]


def test_ages_of_a_topic_are_bounds_where_those_of_a_queue_are_unknown():
    known = TopicQueueRow("t", "b", 0, 0, 5, 5, NOW - 60_000, NOW - 1_000)
    empty = TopicQueueRow("t", "b", 1, 5, 5, 0, None, None)
    unread = TopicQueueRow("t", "b", 2, 0, 3, 3, None, None)
    for rows, text in (
        ([known, empty], "oldest 1m   newest 1s"),
        ([empty], "oldest -   newest -"),
        ([unread], "oldest ?   newest ?"),
        ([known, unread], "oldest >=1m   newest <=1s"),
    ):
        assert texts([topic_pane.figures(rows, [], NOW)])[0].endswith(text)


def test_a_trend_has_the_times_below_it_where_it_is_high():
    lags = [100] * SLOTS
    low, high = (trend_lines(lags, 80, height, NOW, UTC) for height in (2, 5))
    assert texts(low)[0] == "   100 \u2524" + "\u2588" * 72
    assert len(high) == 5
    assert texts(high)[-1].split() == ["13:00", "13:15", "13:30", "13:45"]
    new = [NO_LOOK] * (SLOTS - 2) + [5, 7]
    assert "known for 1m" in texts(trend_lines(new, 80, 2, NOW, UTC))[0]


# The history of lags


def test_a_history_keeps_the_last_hour_by_half_minutes():
    history, key = LagHistory(), ("g", "t")
    assert history.lags(key, NOW) == [NO_LOOK] * SLOTS
    history.add(NOW, [(key, 5)])
    history.add(NOW + 2_000, [(key, 7)])
    history.add(NOW + 4 * STEP_MS, [(key, None)])
    lags = history.lags(key, NOW + 4 * STEP_MS)
    assert lags[-5:] == [7, NO_LOOK, NO_LOOK, NO_LOOK, None]
    assert set(lags[:-5]) == {NO_LOOK}
    history.add(NOW + (SLOTS + 2) * STEP_MS, [(key, 1)])
    assert history.lags(key, NOW + (SLOTS + 2) * STEP_MS)[-1] == 1
    assert set(history.lags(key, NOW + 9 * SLOTS * STEP_MS)) == {NO_LOOK}


@pytest.mark.feature(154)
def test_a_history_begins_with_the_samples_of_the_store():
    samples = SampleHistory()
    begin = NOW - 10 * STEP_MS
    samples.add_seen(begin, {"t@g": {0: 10, 1: 0}}, {"t": {0: 30, 1: 5}}, is_first=True)
    samples.add_seen(begin + 4 * STEP_MS, {"t@g": {0: 30}}, {}, is_first=False)
    history = LagHistory()
    history.begin([("g", "t"), ("g", "other")], samples, NOW)
    assert history.lags(("g", "t"), NOW)[-11:-5] == [25, 25, 25, 25, 5, NO_LOOK]
    assert ("g", "other") not in history


def test_sums_of_histories_leave_out_what_is_unknown():
    assert added([[1, None, NO_LOOK, None], [2, 3, NO_LOOK, None]]) == [3, 3, NO_LOOK, None]


# What needs attention


@pytest.mark.feature(151)
def test_what_needs_attention_is_worst_first():
    lags = [
        lag_row("a", status="WARN", lag=5),
        lag_row("b", status="STALL", lag=5),
        lag_row("c", status="STALL", lag=9),
        lag_row("d", status="STOP", lag=None, unknown_queues=2),
        lag_row("e"),
    ]
    risks = [
        RiskRow("c", "orders", 0, 7, 70, NOW, 60_000, None, "STALL", 9, 0),
        RiskRow("f", "orders", 3, 0, 0, None, None, None, "OK", 0, 0),
    ]
    letters = [
        SimpleNamespace(group="c", unhandled=2, newest_timestamp=NOW - 9_000),
        SimpleNamespace(group="old", unhandled=2, newest_timestamp=NOW - 3_600_000),
    ]
    agenda = [
        AgendaRow(4, "mails", None, 9, NOW - 120_000, NOW, 3, "STUCK", 30_000, 0, 0, 9),
        AgendaRow(5, "mails", None, 9, NOW + 120_000, NOW, 0, "OK", 60_000, 0, 0, 9),
    ]
    disk = [SimpleNamespace(used_percent=92.0, any_hour_percent=75, forced_percent=85.0)]
    rows = attention.ordered(
        [
            *attention.of_disk(disk),
            *attention.of_lag(lags),
            *attention.of_risks(risks),
            *attention.of_dead_letters(letters, NOW, {"c": 1}),
            *attention.of_agenda(agenda, NOW),
        ]
    )
    assert [(row.state, row.group, row.what) for row in rows] == [
        ("STALL", "c", "it has members and reads nothing"),
        ("STALL", "b", "it has members and reads nothing"),
        ("STOP", "d", "it reads nothing and has no member"),
        ("RISK", "c", "7 are deleted unread in 1m"),
        ("DLQ", "c", "+1 in 10m, 2 unhandled"),
        ("LATE", None, "3 of 9 overdue, level 4 STUCK"),
        ("DISK", None, "92 % full: files of any age are deleted"),
        ("WARN", "a", "it reads slower than messages come"),
        ("LOST", "f", "3 were deleted unread"),
    ]
    assert rows[0].command == "rmqctl lag show --topic=orders c"
    assert attention.ordered(attention.of_lag([lag_row("-g", status="STOP")]))[0].command == (
        "rmqctl lag show --topic=orders -- -g"
    )


def late_row(level, overdue):
    return AgendaRow(level, "mails", None, 9, NOW, NOW, overdue, "STUCK", 30_000, 0, 0, 9)


def in_need(*, amount):
    """What needs attention where each sentence has another number."""
    risks = [
        RiskRow("c", "orders", 0, amount, 70, NOW, 60_000, None, "STALL", 9, 0),
        RiskRow("f", "orders", amount, 0, 0, None, None, None, "OK", 0, 0),
    ]
    letters = [SimpleNamespace(group="c", unhandled=amount, newest_timestamp=NOW - 9_000)]
    disk = [SimpleNamespace(used_percent=80.0 + amount, any_hour_percent=75, forced_percent=85.0)]
    return [
        *attention.of_lag([lag_row("g", status="WARN", lag=None, unknown_queues=amount)]),
        *attention.of_risks(risks),
        *attention.of_dead_letters(letters, NOW, {"c": amount}),
        *attention.of_agenda([late_row(4, amount), late_row(5, amount)], NOW),
        *attention.of_disk(disk),
    ]


def test_what_needs_attention_is_the_same_row_when_its_numbers_change():
    table = RowTable(AttentionRow, ATTENTION.key, View(Format.TABLE))
    before, after = in_need(amount=2), in_need(amount=3)
    assert not {row.what for row in before} & {row.what for row in after}
    keys = [table.key_of(row) for row in before]
    table.set_rows(after)
    assert [table.place_of(key) for key in keys] == list(range(len(before)))


def test_counts_of_the_overview():
    lags = [
        lag_row("a", status="STALL", lag=5),
        lag_row("a", topic="mails"),
        lag_row("b", topic="mails", rate_in=None),
    ]
    assert texts([overview.groups_line(overview.sums_of(lags))]) == [
        " GROUPS 2       STOP 0  STALL 1  REWIND 0  WARN 0  UNKNOWN 0  OK 1"
    ]
    topics = [
        SimpleNamespace(read_queues=4, messages=1_000),
        SimpleNamespace(read_queues=4, messages=2),
    ]
    assert texts([overview.topics_line(topics, overview.sums_of(lags))]) == [
        " TOPICS 2       queues 8   messages 1,002   in ?/s   out 3.0/s"
    ]
    letters = [SimpleNamespace(unhandled=2, newest_timestamp=NOW - 12_000)]
    new = [SimpleNamespace(new=1), SimpleNamespace(new=2)]
    lines = [overview.dead_letters_line(letters, NOW, found) for found in (new, None)]
    assert texts(lines) == [
        " DEAD LETTERS   2 unhandled in 1 group   newest 12s ago   +3 in 10m",
        " DEAD LETTERS   2 unhandled in 1 group   newest 12s ago   +? in 10m",
    ]
    agenda = [AgendaRow(4, "mails", None, 9, NOW - 120_000, NOW, 3, "STUCK", 30_000, 0, 0, 9)]
    assert texts([overview.delayed_line(agenda, NOW)]) == [
        " DELAYED        9 waiting   STUCK 3 (level 4)"
    ]
    disk = [SimpleNamespace(used_percent=61.0, any_hour_percent=75)]
    risk = [RiskRow("c", "orders", 0, 7, 70, NOW, 60_000, None, "STALL", 9, 0)]
    assert texts([overview.disk_line(disk, risk, 80), overview.disk_line(disk, None, 140)]) == [
        " DISK           61 % of 75 %   7 deleted unread in 1m: c",
        " DISK           61 % of 75 %  " + charts.bar(0.61, 20, filled_up=True)
        + "   unread and deleted soon: ?",
    ]  # fmt: skip
    assert texts([overview.groups_line(None), overview.delayed_line(None, NOW)]) == [
        " GROUPS         ?",
        " DELAYED        ?",
    ]


KNOWN = RiskRow("c", "orders", 0, 7, 70, NOW, 60_000, None, "STALL", 9, 0)
IN_PART = RiskRow("p", "orders", None, 5, 50, NOW, 0, None, "STALL", 9, 2)
UNKNOWN = RiskRow("u", "orders", None, None, None, None, None, None, "UNKNOWN", None, 4)
LOST = RiskRow("l", "orders", 3, 0, 0, None, None, None, "OK", 0, 0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "nothing that is deleted within a day is unread"),
        ([LOST], "nothing that is deleted within a day is unread"),
        ([UNKNOWN], "unknown for u"),
        ([LOST, UNKNOWN, UNKNOWN._replace(group="v")], "unknown for u and 1 more"),
        ([KNOWN], "c 7 messages (RISK in 1m)"),
        ([IN_PART], "p at least 5 messages (RISK in 0s)"),
        ([KNOWN, UNKNOWN], "c 7 messages (RISK in 1m)  unknown for u"),
    ],
)
def test_what_may_be_deleted_unread_is_never_nothing_where_it_is_unknown(rows, said):
    assert texts([health.unread_line(rows)]) == [f" UNREAD  {said}"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([LOST], ""),
        ([UNKNOWN], "   unread and deleted soon: unknown for u"),
        ([KNOWN, UNKNOWN], "   7 deleted unread in 1m: c"),
        ([IN_PART, UNKNOWN], "   at least 5 deleted unread now: p"),
    ],
)
def test_the_disk_says_of_which_groups_that_is_unknown(rows, said):
    disk = [SimpleNamespace(used_percent=61.0, any_hour_percent=75)]
    assert texts([overview.disk_line(disk, rows, 80)]) == [f" DISK           61 % of 75 %{said}"]


def test_what_needs_attention_says_at_least():
    [row] = attention.of_risks([IN_PART, UNKNOWN])
    assert row.what == "at least 5 are deleted unread now"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([lag_row(lag=5)], "5"),
        ([lag_row(lag=0)], "0"),
        ([lag_row(lag=5, unknown_queues=2)], "at least 5"),
        ([lag_row(lag=5), lag_row("b", lag=None, unknown_queues=1)], "at least 5"),
        ([lag_row(lag=0), lag_row("b", lag=None, unknown_queues=1)], "?"),
    ],
)
def test_the_lag_of_all_groups_is_whole_only_if_each_queue_is_known(rows, said):
    [line] = texts([overview.lag_line([], overview.sums_of(rows), 4)])
    assert line == f"LAG {said}        1 h"


# The agenda and a topic


@pytest.mark.feature(160)
@pytest.mark.parametrize(("width", "height"), [(80, 3), (140, 6)])
def test_the_next_hour(width, height):
    dues = [NOW - 5, *[NOW + 1_800_000] * 3, NOW + 7_200_000]
    lines = texts(hour_lines(dues, NOW, width, height))
    assert len(lines) == height
    assert lines[-1] == " 5 wait: 1 overdue, 3 within the hour, 1 later"
    assert lines[-2].split() == ["now", "+15m", "+30m", "+45m"]
    cells = width - 13
    assert lines[-3][12] in "\u2583\u2588"
    assert lines[0][12 + cells // 2] == "\u2588"


def test_shares_of_queues():
    rows = [TopicQueueRow("t", "b", n, 0, count, count, None, None) for n, count in
            enumerate([10, 5, 0, 10, 10])]  # fmt: skip
    full = "\u2588" * 11
    assert texts(topic_pane.share_lines(rows, 80, 3, None)) == [
        f"    0 {full}    1 \u2588\u2588\u2588\u2588\u2588\u258c         2                3 {full}",
        f"    4 {full}",
    ]
    many = [TopicQueueRow("t", "b", n, 0, 1, 1, None, None) for n in range(20)]
    assert texts(topic_pane.share_lines(many, 80, 3, None))[-1] == " \u2026 12 of 20 queues more"
    assert topic_pane.skew(rows) == pytest.approx(10 * 5 / 35)
    assert topic_pane.skew([]) is None


@pytest.mark.parametrize(("how", "said"), [({}, "  reading ..."), ({"error": "it is gone"}, "  ?")])
@pytest.mark.parametrize(
    ("screen", "read", "false"),
    [
        ("group", groups.MEMBERS, "the group has no progress and no members"),
        ("agenda", retries.AGENDA, "0 wait"),
        ("agenda", EACH, "0 wait"),
    ],
)
def test_what_is_drawn_of_rows_that_are_not_there_says_so(screen, read, false, how, said):
    place = Place(screen, ("billing",))
    spec = spec_of(screen).panes[0]
    assert spec.pane is not None
    pane = spec.pane(spec, place, View(Format.TABLE))
    for look in pane.looks:
        more = {} if look is read else how
        if look is read or how:
            asked = Asked(look, place, everything=False, number=1)
            pane.take(Batch(asked, [], first=True, complete=True, as_of=NOW, took_ms=1, **more))
    shown = texts(pane.lines(80, 4, active=False, titled=False))
    assert said in shown
    assert false not in "\n".join(shown)
