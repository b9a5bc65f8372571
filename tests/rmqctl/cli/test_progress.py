import io

import pytest

from rmqctl.cli.progress import Progress
from rmqctl.output.last_line import LastLine


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def progress(style, total=None):
    clock, out = Clock(), io.StringIO()
    return Progress("produce", "messages", style, total, LastLine(out), clock), clock, out


@pytest.mark.parametrize("style", ["bar", "plain", "none"])
def test_nothing_is_shown_for_work_under_half_a_second(style):
    shown, clock, out = progress(style, 10)
    with shown:
        clock.now += 0.49
        shown.advance(5, 5)
    assert out.getvalue() == ""


def test_a_bar_rewrites_its_line_and_wipes_it_at_the_end():
    shown, clock, out = progress("bar", 1000)
    with shown:
        clock.now += 1
        shown.advance(1_500, 250)
        assert out.getvalue() == (
            "\r\x1b[K[######..................] produce: 1,500 messages, 1,500/s,  25%, 3s left"
        )
        shown.advance(1, 1)  # too soon for another
        assert out.getvalue().count("\r") == 1
        clock.now += 1
        shown.advance(0)
        assert out.getvalue().count("\r") == 2
    assert out.getvalue().endswith("\r\x1b[K")


def test_without_a_total_there_is_only_a_count():
    shown, clock, out = progress("bar")
    clock.now += 2
    shown.advance(10)
    assert out.getvalue() == "\r\x1b[Kproduce: 10 messages, 5/s"


def test_plain_lines_come_every_few_seconds():
    shown, clock, out = progress("plain")
    for _ in range(11):
        clock.now += 1
        shown.advance(10)
    assert out.getvalue() == "produce: 50 messages, 10/s\nproduce: 100 messages, 10/s\n"


def test_none_counts_in_silence():
    shown, clock, out = progress("none", 10)
    clock.now += 100
    shown.advance(7)
    assert shown.count == 7
    assert shown.elapsed_ms() == 100_000
    assert out.getvalue() == ""
