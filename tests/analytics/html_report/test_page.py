"""The page as text: one file that holds the report, and in which no name is more than a name."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

from analytics.html_report.writer import ROWS_AT_MOST, as_data, page
from tests.support.hostile_report import BROKER, NAMES, document, hostile_store

pytestmark = pytest.mark.feature(59)

VOID = {"meta"}


class Reader(HTMLParser):
    """Elements with their text; an element that is not closed, or closed twice, is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[int] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(len(self.elements))
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self.open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]] += data

    def of(self, name: str) -> list[str]:
        named = zip(self.elements, self.texts, strict=True)
        return [text for (tag, _), text in named if tag == name]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return document(hostile_store(tmp_path_factory.mktemp("page") / "store"))


def held(text: str) -> Any:
    return json.loads(Reader(text).of("script")[0])


def test_it_holds_the_report_and_nothing_of_it_is_changed(report: dict[str, Any]) -> None:
    found = held(page(report, zone="Europe/Berlin", compared_as_of=7))
    about = found.pop("page")
    assert found == report
    assert (about["zone"], about["compared_as_of"]) == ("Europe/Berlin", 7)
    assert about["left_out"] == {"minutes": 0, "hours": 0}


def test_no_name_stands_outside_of_the_data(report: dict[str, Any]) -> None:
    text = page(report)
    assert text.isascii()
    data = Reader(text).of("script")[0]
    assert not set("<>&") & set(data)
    rest = text.replace(data, "")
    for name in (*NAMES, BROKER):
        if name not in {"plain", "constructor"}:
            assert name not in rest
    assert [tag for tag, _ in Reader(text).elements if tag == "script"] == ["script"] * 2


def test_it_needs_nothing_from_elsewhere_and_lets_nothing_else_run(report: dict[str, Any]) -> None:
    text = page(report)
    reader = Reader(text)
    assert not {name for _, names in reader.elements for name in names} & {"src", "href", "style"}
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "innerHTML" not in text.replace("no innerHTML", "")
    (policy,) = [
        dict(names)["content"]
        for tag, names in reader.elements
        if names.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,) = reader.of("style")
    for what, held_there in (("style-src", style), ("script-src", reader.of("script")[1])):
        digest = b64encode(sha256(held_there.encode()).digest()).decode()
        assert f"{what} 'sha256-{digest}'" in str(policy)
    assert str(policy).startswith("default-src 'none'")


def test_the_head_says_how_late_the_groups_are(report: dict[str, Any]) -> None:
    reader = Reader(page(report))
    assert reader.of("title") == ["Lag report, 2023-11-16 06:13 UTC"]
    all_of_them = "239 unread messages in 12 groups and 12 topics of 1 store: WARN"
    assert reader.of("p")[1] == f"at least {all_of_them}"
    known = {**report, "queues": [row for row in report["queues"] if row["lag"] is not None]}
    assert Reader(page(known)).of("p")[1] == all_of_them
    assert Reader(page(known, top=3)).of("p")[1] == f"at least {all_of_them}", "not all are shown"
    unknown = {**report, "totals": {**report["totals"], "lag": None}}
    assert "an unknown number of unread messages" in page(unknown)
    assert "1e" not in Reader(page({**report, "as_of": 10**18})).of("title")[0]


def headline(report: dict[str, Any], **totals: Any) -> str:
    return Reader(page({**report, "totals": {**report["totals"], **totals}})).of("p")[0]


def test_the_headline_is_how_long_the_oldest_message_waits(report: dict[str, Any]) -> None:
    known = {**report, "queues": [row for row in report["queues"] if row["lag"] is not None]}
    assert headline(known) == "The oldest unread message has waited 1d 7h."
    assert headline(known, oldest_unread_age_ms=59_999) == (
        "The oldest unread message has waited 59s."
    )
    assert headline(known, oldest_unread_age_ms=7) == "The oldest unread message has waited 7ms."
    # A queue of which nothing is known may have an older one.
    first = known["queues"][0]
    unknown = {**first, "lag": None, "committed_offset": None, "max_offset": 9, "min_offset": 0}
    least = "The oldest unread message has waited at least 1d 7h."
    assert headline({**known, "queues": [unknown]}) == least
    assert headline(
        {**known, "queues": [{**first, "lag": 3, "oldest_unread_timestamp": None}]}
    ) == (least)
    nothing = {"lag": 0, "oldest_unread_age_ms": None, "unknown_queues": 0}
    empty = {**unknown, "max_offset": 0}
    assert headline({**known, "queues": [empty]}, **nothing) == "Nothing is unread."
    for queues, lag in (([unknown], 0), ([], None), ([], 5)):
        assert headline({**known, "queues": queues}, **{**nothing, "lag": lag}) == (
            "How long the oldest unread message has waited is unknown."
        )


def test_many_rows_by_day_are_left_out_and_told_of(report: dict[str, Any]) -> None:
    day = {"day_timestamp": 0, "lag": 1}
    days = {"days": [day], "groups": [day] * (ROWS_AT_MOST + 1), "warnings": []}
    found = held(page(report, days=days))["page"]["days"]
    assert (found["groups"], found["left_out"], found["days"]) == ([], ROWS_AT_MOST + 1, [day])
    found = held(page(report, days={**days, "groups": [day]}))["page"]["days"]
    assert (found["groups"], found["left_out"]) == ([day], 0)


def rows(count: int, key: str, step: int) -> list[dict[str, Any]]:
    return [
        {"group": f"g{at % 7}", "topic": "t", key: at // 7 * step, "messages": 2, "bytes": 3}
        for at in range(count)
    ]


@pytest.mark.slow
def test_many_minutes_give_way_to_hours_and_the_page_says_so(report: dict[str, Any]) -> None:
    most = {**report, "minutes": rows(ROWS_AT_MOST, "minute_timestamp", 60_000)}
    assert held(page(most))["minutes"] == most["minutes"]
    more = {**report, "minutes": rows(ROWS_AT_MOST + 1, "minute_timestamp", 60_000)}
    found = held(page(more))
    assert found["minutes"] == []
    assert found["hours"] == report["hours"]
    assert found["page"]["left_out"] == {"minutes": ROWS_AT_MOST + 1, "hours": 0}


def test_many_hours_are_summed_and_nothing_is_lost(report: dict[str, Any]) -> None:
    count = ROWS_AT_MOST + 5
    hours = rows(count, "hour_timestamp", 3_600_000)
    hours.append({**hours[0], "hour_timestamp": None})
    large = {**report, "minutes": rows(count, "minute_timestamp", 60_000), "hours": hours}
    found = held(page(large))
    assert found["page"]["left_out"] == {"minutes": count, "hours": count + 1}
    assert sum(row["messages"] for row in found["hours"]) == 2 * (count + 1)
    assert found["hours"][-1]["hour_timestamp"] is None
    assert {(row["group"], row["topic"]) for row in found["hours"]} == {(None, None)}
    assert len(found["hours"]) == -(-count // 7) + 1


def test_numbers_that_javascript_can_not_hold_come_as_text() -> None:
    value = {"a": [2**53, 2**53 + 1, -(2**63), 1.5, True, None, "\ud800<"]}
    assert json.loads(as_data(value)) == {
        "a": [2**53, str(2**53 + 1), str(-(2**63)), 1.5, True, None, "\ud800<"]
    }
    with pytest.raises(ValueError, match="Out of range float"):
        as_data({"a": float("nan")})
