"""What makes many rows quick gives what the plain way gives."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.lag.rows import LagRow
from rmqctl.console.looks import lag
from rmqctl.console.looks.groups import GROUPS
from rmqctl.console.looks.history import STEP_MS, added
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.overview import sums_of
from rmqctl.console.reading import Asked, Batch
from rmqctl.console.screens.overview import SCREENS, SummaryPane
from rmqctl.console.tables import Filter, RowTable, view_of
from rmqctl.output.view import Format, View
from storage.clock import now_ms
from storage.configs.offset_samples import OffsetSamples
from storage.configs.topics import TopicConfig


def row(number, lag_now, status):
    names = f"group-{number // 4:02}", f"topic-{number % 4}"
    return LagRow(*names, 1, lag_now, 0, None, None, 0.0, 0.0, 0, status, 0, 0, 0, 1.0, 0, None, 0)


def table():
    return RowTable(LagRow, ("group", "topic"), view_of(View(Format.TABLE), sort=("-lag",)))


def test_no_column_is_left_out_before_it_is_drawn():
    """Keys may come between a choice of other columns and the next frame."""
    found = table()
    found.layout(20, 0, 0)
    assert "dlq" in found.left_out()
    found.set_view(found.view._replace(columns=("group", "lag")))
    assert found.left_out() == []
    found.layout(8, 0, 0)
    assert found.left_out() == ["lag"]


rows_of_a_look = st.lists(
    st.tuples(st.none() | st.integers(0, 30), st.sampled_from(("OK", "STOP"))), max_size=24
).map(lambda lags: [row(n, *one) for n, one in enumerate(lags)])
changes = st.one_of(
    st.tuples(st.just("filter"), st.text("gto-0123", max_size=4), st.booleans(), st.booleans()),
    st.tuples(st.just("sort"), st.sampled_from(("lag", "-lag", "-group", "status"))),
    st.tuples(st.just("where"), st.sampled_from((None, "lag > 7", "status = STOP"))),
    st.tuples(st.just("rows"), rows_of_a_look),
    st.tuples(st.just("arranged"), rows_of_a_look),
)


def change(found, name, *how):
    """Change a table as keys and looks do."""
    if name == "filter":
        found.set_filter(Filter(*how))
    elif name == "sort":
        found.set_view(found.view._replace(sort=how))
    elif name == "where":
        found.set_view(found.view._replace(where=how[0]))
    else:
        found.set_rows(*how)


@settings(deadline=None)
@given(st.lists(st.tuples(changes, st.booleans()), max_size=12))
@pytest.mark.slow
def test_rows_that_were_arranged_before_and_filters_that_narrow_change_nothing(steps):
    quick, arranged = table(), None
    rows, name, wanted, view = [], None, Filter(), quick.view
    for (name, *how), is_late in steps:
        if name == "arranged":
            arranged = quick.arranged(how[0], quick.view.now_ms)
            if not is_late:  # else something is changed before they are taken
                quick.set_rows(how[0], arranged)
                rows = how[0]
            continue
        if name == "rows" and arranged is not None:
            how = [arranged.rows, arranged]
            arranged = None
        change(quick, name, *how)
        rows = how[0] if name == "rows" else rows
        wanted, view = quick.filter, quick.view
        plain = table()
        plain.set_view(view)
        plain.filter = wanted
        plain.set_rows(rows)
        assert quick.shown == plain.shown
        assert quick.total == plain.total == len(rows)


@pytest.mark.slow
def test_the_sum_of_trends_is_that_of_their_rows(store):
    memory: dict[str, Any] = {}
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("orders", 1, 1))
        broker.send_column("orders", [b"x"] * 100, 0)
        at = now_ms()
        samples, places = OffsetSamples(store), [f"orders@group-{n}" for n in range(5)]
        for minutes in (9, 6, 3):
            offsets = {place: {0: 50 - minutes} for place in places}
            samples.append(offsets, {"orders": {0: 100}}, at - minutes * 60_000)
        for number in range(40):
            group = f"group-{number // 9}"  # others come, and their rows begin then
            broker.update_consumer_offsets(group, [OffsetCommit("orders", 0, number)])
            source = Source(broker, at, lambda sentence: None, memory)
            rows: Any = lag.TRENDS.read(source, Place("overview"))
            assert rows.total == added(one.lags for one in rows)
            assert rows.total[-1] == sum(one.lags[-1] for one in rows) > 0
            at += (number % 4) * STEP_MS // 3
        at += 20 * STEP_MS
        source = Source(broker, at, lambda sentence: None, memory)
        rows = lag.TRENDS.read(source, Place("overview"))
        assert rows.total == added(one.lags for one in rows)


def test_what_is_made_of_rows_is_made_again_where_they_are_others():
    spec = SCREENS["overview"].panes[0]
    pane = SummaryPane(spec, Place("overview"), View(Format.TABLE))
    made = []

    def make():
        made.append(1)
        return len(made)

    rows, others = [1], [1]
    assert [pane.made_of("n", make, rows) for _ in range(3)] == [1, 1, 1]
    assert pane.made_of("n", make, others) == 2
    assert pane.made_of("n", make, others, at=5) == 3
    assert pane.made_of("m", make, others, at=5) == 4
    assert pane.made_of("n", make, others, at=5) == 3


def test_what_the_reader_makes_of_rows_is_used_for_these_rows_only():
    spec = SCREENS["overview"].panes[0]
    pane, plain = (SummaryPane(spec, Place("overview"), View(Format.TABLE)) for _ in range(2))
    looks = [[row(n, n, "OK") for n in range(9)], [row(n, 2 * n, "STOP") for n in range(4)]]
    for number, rows in enumerate(looks):
        asked = Asked(GROUPS, Place("overview"), everything=False, number=number)
        batch = Batch(asked, rows, first=True, complete=True, as_of=1, took_ms=1)
        before = pane.rows_of(GROUPS) and pane.made("sums")
        pane.prepare(batch)
        if number:  # a key comes between: what is shown is still made of the rows before
            assert pane.made("sums") is before
        pane.take(batch)
        plain.take(batch)
        assert pane.made("sums") is pane.made("sums")
        assert pane.made("sums") == plain.made("sums") == sums_of(rows)
        assert pane.body(80, 5) == plain.body(80, 5)
