"""The page in a real browser: it draws everything, runs no foreign code, and can be used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from analytics.html_report.writer import ROWS_AT_MOST, page
from tests.support.browser import probed
from tests.support.hostile_report import BROKER, NAMES, document, hostile_store

pytestmark = [pytest.mark.slow, pytest.mark.feature(59)]

GROUP, TOPIC, LAG = 0, 1, 3
UNKNOWN = "-"
MORE = 1100


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """With more tags than a table has at once, and compared with an earlier one."""
    found = document(hostile_store(tmp_path_factory.mktemp("page") / "store"))
    found["tags"] += [{**found["tags"][0], "tag": f"tag {at}", "bytes": at} for at in range(MORE)]
    for row in found["groups"]:
        if row["group"] != "plain":
            row["lag_before"] = 20
            row["lag_change"] = None if row["lag"] is None else row["lag"] - 20
    return found


@pytest.fixture(scope="module")
def seen(report: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("seen")
    file = folder / "page.html"
    days = days_of_names(report)
    text = page(report, zone="Europe/Berlin", compared_as_of=0, since=1, top=77, days=days)
    file.write_text(text, "utf-8")
    others = []
    for name, other in odd_reports(report):
        others.append(str(folder / f"{name}.html"))
        (folder / f"{name}.html").write_text(page(other), "utf-8")
    words = {"file": str(file), "pictures": str(folder), "others": others}
    return probed("page_probe.js", words)


DAY = 86_400_000


def days_of_names(report: dict[str, Any]) -> dict[str, Any]:
    """Four days and one without a report between; all groups on the last day, one on the others."""
    figures: dict[str, Any] = {"lag_bytes": 10, "unknown_queues": 0, "stores": 2}
    days: list[dict[str, Any]] = [
        {**figures, "day_timestamp": 0, "lag": 1, "oldest_unread_age_ms": 1000, "groups": 1},
        {**figures, "day_timestamp": DAY, "lag": 100, "oldest_unread_age_ms": DAY, "groups": 1},
        {**figures, "day_timestamp": 3 * DAY, "lag": None, "oldest_unread_age_ms": None}
        | {"groups": 1, "unknown_queues": 3},
        {**figures, "day_timestamp": 4 * DAY, "lag": 10_000, "oldest_unread_age_ms": 2 * DAY}
        | {"groups": 12},
    ]
    last = {**days[-1], "lag": 7, "stores": 1}
    names = [{"group": row["group"], "topic": row["topic"]} for row in report["groups"]]
    groups = [{**name, **last} for name in names]
    groups += [{"group": "gone", "topic": "gone", **day} for day in days[:-1]]
    return {"days": days, "groups": groups, "warnings": [f"{BROKER}: not read"]}


def odd_reports(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One of nothing, one of too many minutes, one of too many hours, one of odd figures."""
    lists: dict[str, list[Any]] = {
        name: [] for name, value in report.items() if isinstance(value, list)
    }
    yield "empty", {**report, **lists}
    many = {**report, "minutes": [report["minutes"][0]] * (ROWS_AT_MOST + 1)}
    yield "hours", many
    yield "sums", {**many, "hours": [report["hours"][0]] * (ROWS_AT_MOST + 1)}
    first, second, *rest = report["groups"]
    moments = [
        {**report["minutes"][0], "minute_timestamp": moment}
        for moment in (None, 0, 2**62 // 60_000)
    ]
    groups = [
        {**first, "lag": 2**62 + 1, "risk_timestamp": 2**62, "retry": None, "dlq": 0},
        {**second, "lag": -1, "status": "x y", "retry": 2, "dlq": 2**62 + 1},
        *rest,
    ]
    yield "odd", {**report, "groups": groups, "minutes": moments}


def text(value: object) -> str:
    """As the page has it; JavaScript knows one kind of numbers."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return UNKNOWN if value is None else str(value)


def test_it_opens_from_disk_and_asks_for_nothing_else(seen: Any) -> None:
    assert seen["errors"] == []
    opened = {url.rpartition("/")[2] for url in seen["requests"]}
    assert opened == {"page.html", "empty.html", "hours.html", "sums.html", "odd.html"}


def test_names_are_shown_and_do_not_run(seen: Any, report: dict[str, Any]) -> None:
    assert (seen["hit"], seen["scripts"], seen["images"]) == (None, 2, 0)
    assert seen["smuggled"] is None
    shown = {(row[GROUP], row[TOPIC]) for row in seen["sorted"]["first"]}
    assert shown == {(row["group"], row["topic"]) for row in report["groups"]}
    tags = {row["tag"] or "no tag" for row in report["tags"]}
    assert {row[2] for row in seen["rows"]["tags"]} == tags >= {*NAMES[2:], "no tag"}
    turned = str.maketrans({"\u202e": "\\u202e", "\u2066": "\\u2066"})
    assert seen["warnings"] == [sentence.translate(turned) for sentence in report["warnings"]]
    assert [row[0] for row in seen["rows"]["stores"]] == [BROKER]


@pytest.mark.parametrize("look", ["light", "dark", "phone", "print"])
def test_it_can_be_read_everywhere(seen: Any, look: str) -> None:
    found = seen["looks"][look]
    assert found["colours"] > 30
    assert (found["brightness"] < 90) == (look == "dark")
    ratio, words = found["contrast"]
    assert ratio >= 4.5, words
    assert found["leaving"] == []
    if look != "print":
        assert found["page"] == found["window"]


def test_groups_are_sorted_and_filtered(seen: Any, report: dict[str, Any]) -> None:
    lags = sorted((row["lag"] for row in report["groups"] if row["lag"] is not None), reverse=True)
    down = [str(lag) for lag in lags]
    assert [row[LAG] for row in seen["sorted"]["first"]] == [*down, UNKNOWN]
    assert [row[LAG] for row in seen["sorted"]["lagUp"]] == [*reversed(down), UNKNOWN]
    assert seen["sorted"]["way"] == "ascending"
    topics = [row["topic"] for row in report["groups"]]
    assert [row[TOPIC] for row in seen["sorted"]["topic"]] == sorted(
        topics, key=lambda name: name.encode("utf-16-be")
    )
    assert {(row[GROUP], row[TOPIC]) for row in seen["filtered"]["rows"]} == {
        ("plain", "constructor"),
        ("<script>window.hit = 1<", "plain"),
    }
    assert seen["filtered"]["told"] == f"2 of {len(topics)} rows"


def test_every_figure_is_on_the_page(seen: Any, report: dict[str, Any]) -> None:
    fields = (
        *("group", "topic", "broker", "queue_id", "min_offset", "committed_offset", "max_offset"),
        *("status", "lag", "lag_bytes", "oldest_unread_age_ms", "rate_in", "rate_out", "drain_ms"),
        *("lost", "oldest_unread_timestamp", "risk_timestamp"),
    )
    wanted = [[text(row[name]) for name in fields] for row in report["queues"]]
    assert sorted(seen["rows"]["queues"]) == sorted(wanted)
    groups = {(row["group"], row["topic"]): row for row in report["groups"]}
    for row in seen["sorted"]["first"]:
        left = {"lag_before": None, "lag_change": None, **groups[row[GROUP], row[TOPIC]]}
        assert sorted(row) == sorted(text(value) for value in left.values())
    assert sorted(seen["rows"]["tags"]) == sorted(
        [
            row["group"],
            row["topic"],
            row["tag"] or "no tag",
            str(row["messages"]),
            str(row["bytes"]),
        ]
        for row in report["tags"]
    )
    assert [row[3:] for row in seen["heat"] if row[0] == "plain"] == [
        [text(row["lag"]) for row in report["queues"] if row["group"] == "plain"]
    ]


def test_bars_hold_every_minute(seen: Any, report: dict[str, Any]) -> None:
    total = sum(row["messages"] for row in report["minutes"])
    assert sum(int(row[1]) for row in seen["rows"]["bars"]) == total == report["totals"]["lag"]
    for name, found in seen["chosen"].items():
        group, topic = json.loads(name)
        here = [row for row in report["minutes"] if (row["group"], row["topic"]) == (group, topic)]
        assert sum(int(row[1]) for row in found["bars"]) == sum(row["messages"] for row in here)
        for row in report["ages"]:
            if (row["group"], row["topic"]) == (group, topic):
                assert f": {row['messages']}" in found["ages"]
    days = days_of_names(report)["groups"]
    assert len(seen["chosen"]) == len(
        {(row["group"], row["topic"]) for row in (*report["ages"], *days)}
    )


def test_what_is_not_there_is_said(seen: Any, report: dict[str, Any]) -> None:
    assert seen["cut"] == [1000, f"The first 1,000 of {len(report['tags']):,} rows. Show all"]
    assert seen["notes"][:2] == [
        "Of all groups the 77 largest backlogs only; totals are those of all.",
        "Of minutes and hours only those that end after 1970-01-01 01:00:00.",
    ]


def test_it_compares(seen: Any, report: dict[str, Any]) -> None:
    change = sum(row.get("lag_change") or 0 for row in report["groups"])
    assert seen["tiles"][-1] == f"{change:+}"
    changes = {row[GROUP]: row[LAG + 1 : LAG + 3] for row in seen["sorted"]["first"]}
    assert changes["constructor"] == ["20", "-2"]
    assert changes["plain"] == [UNKNOWN, UNKNOWN]


def test_of_nothing_there_is_a_page_too(seen: Any) -> None:
    assert "Nothing is unread whose time is known." in seen["others"]["empty"]["time"]
    assert seen["others"]["empty"]["groups"] == []


def test_what_is_too_much_for_a_page_is_said_and_summed_up(
    seen: Any, report: dict[str, Any]
) -> None:
    said = "20,001 rows by minute would be too many for a page: hours are shown."
    assert said in seen["others"]["hours"]["time"]
    whole = sum(row["messages"] for row in report["hours"])
    assert sum(int(row[1]) for row in seen["others"]["hours"]["bars"]) == whole
    assert said in seen["others"]["sums"]["time"]
    assert "20,001 rows by hour would be too many, too" in seen["others"]["sums"]["time"]
    whole = (ROWS_AT_MOST + 1) * report["hours"][0]["messages"]
    assert sum(int(row[1]) for row in seen["others"]["sums"]["bars"]) == whole


def test_odd_figures_are_exact(seen: Any, report: dict[str, Any]) -> None:
    odd = seen["others"]["odd"]
    assert odd["groups"][0][LAG] == str(2**62 + 1)
    first = report["minutes"][0]["messages"]
    assert [int(row[1]) for row in odd["bars"]] == [first, first]
    assert f"{first} message of unknown time is in no bar." in odd["time"]


def test_depths_that_are_not_known_are_shown(seen: Any, report: dict[str, Any]) -> None:
    shown = {row[0]: row[1:] for row in seen["others"]["odd"]["depths"]}
    first, second, *others = [row["group"] for row in report["groups"]]
    assert first not in (second, *others)
    assert shown[first] == [UNKNOWN, "0"]
    assert shown[second] == ["2", str(2**62 + 1)]
    rest = [row for row in report["groups"][2:] if (row["retry"], row["dlq"]) == (0, 0)]
    assert rest
    assert not {row["group"] for row in rest} & shown.keys()


def test_keys_walk_and_look_closer(seen: Any) -> None:
    (whole, _), _, (same, second), (closer, begin), _, (again, _) = seen["zoom"]
    assert whole == same == again
    assert closer < whole
    hour = second.split(",")[0]
    assert begin.startswith(hour), "the bar that was looked at is what is shown then"
    assert "a bar is 1m" in begin


def test_days_are_drawn_with_what_is_unknown_and_what_is_not_there(seen: Any) -> None:
    assert seen["days"]["rows"] == [
        ["1970-01-01", "2", "1", "10", "1000", "0"],
        ["1970-01-02", "2", "100", "10", str(DAY), "0"],
        ["1970-01-03", *[UNKNOWN] * 5],
        ["1970-01-04", "2", UNKNOWN, "10", UNKNOWN, "3"],
        ["1970-01-05", "2", "10000", "10", str(2 * DAY), "0"],
    ]
    assert seen["days"]["read"] == [
        "1970-01-01: 1s, of 2 stores",
        "1970-01-02: 1d, of 2 stores",
        "1970-01-03: no report",
        "1970-01-04: unknown, of 2 stores, 3 queues not known",
        "1970-01-05: 2d, of 2 stores",
    ]
    assert seen["days"]["marks"] == 2
    assert seen["days"]["lag"] == "1970-01-05: 10,000 messages, of 2 stores"
    assert seen["days"]["chosen"] == "1970-01-01: not in the report"
    assert seen["days"]["notes"] == [f"{BROKER}: not read"]


def test_a_logarithmic_scale_shows_small_bars_beside_large_ones(seen: Any) -> None:
    linear, logarithmic = seen["scales"]["linear"], seen["scales"]["logarithmic"]
    assert linear[0] < linear[1] < linear[2] / 50
    assert logarithmic[0] > logarithmic[2] / 20
    steps = [logarithmic[1] - logarithmic[0], logarithmic[2] - logarithmic[1]]
    assert abs(steps[0] - steps[1]) < 1, "1, 100 and 10,000 are as far from each other"
    assert seen["scales"]["words"][:3] == ["1", "10", "100"]
    assert len(seen["scales"]["legend"]) == 1
    assert seen["scales"]["legend"][0].startswith("all groups: ")
    assert seen["scales"]["back"] == linear
    assert seen["scales"]["label"] == "Logarithmic scale"


def test_times_are_those_of_the_zone(seen: Any) -> None:
    assert seen["zones"] == ["Europe/Berlin", "Asia/Shanghai", "UTC"]
    assert "2023-11-16 06:13:50" in seen["footer"]
