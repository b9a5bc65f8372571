"""The pages of docs/tasks are what happens when they are typed on a terminal."""

import re
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.console_screen import at_home
from tests.support.task_pages import (
    TASKS,
    Outcome,
    Step,
    clock_of,
    is_shown,
    run_page,
    settled,
    setup_of,
    steps_of,
    written,
)

PAGES = sorted(path for path in TASKS.glob("*.md") if path.name != "README.md")
LONG = {
    *("at-night", "report-on-a-cluster"),
    *("who-is-late", "find-the-message", "take-a-topic-home", "settings"),
    *("copy-a-store-while-it-runs", "get-lost-progress-back", "see-what-fills-the-disk"),
    *("come-from-mqadmin", "empty-a-dlq", "read-a-dead-brokers-disk", "read-a-topic"),
    *("rebuild-what-can-be-derived", "look-something-up", "undo-a-reset"),
    "mend-a-damaged-store",
}
"""Pages whose commands take longest, up to ten seconds, and pages that are like another one."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.long if path.stem in LONG else ())
        for path in PAGES
    ],
)
def test_a_page_shows_what_its_commands_print(path, tmp_path):
    steps = steps_of(path.read_text("utf-8"))
    assert steps
    page = path.read_text("utf-8")
    if clock_of(page) is None:
        outcomes = run_page(page, tmp_path)
    elif shutil.which("cc") is None:
        pytest.skip("needs cc on PATH")
    else:  # a screen of 80 columns has no room for a long path
        with tempfile.TemporaryDirectory(prefix="t") as scratch:
            outcomes = run_page(page, Path(scratch))
    for place, (step, outcome) in enumerate(zip(steps, outcomes, strict=True)):
        assert is_shown(step.shown, outcome.printed), (
            f"{step.command}\n{outcome.printed}\n"
            f"(python -m tests.support.task_pages {path.relative_to(TASKS.parents[1])} writes it)"
        )
        told = steps[place + 1].command if place + 1 < len(steps) else ""
        assert outcome.code == 0 or "$?" in told, f"{step.command}: exit code {outcome.code}"


def test_the_index_names_every_page_and_each_page_has_its_script():
    index = (TASKS / "README.md").read_text("utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert linked == {path.name for path in PAGES}
    used = set()
    for path in PAGES:
        setup = setup_of(path.read_text("utf-8"))
        if setup is not None:
            assert (TASKS / "setup" / setup).is_file(), path.name
            used.add(setup)
    scripts = list((TASKS / "setup").glob("*.sh"))
    assert used == {path.name for path in scripts}
    for path in scripts:
        assert "\nset -eu\n" in path.read_text("utf-8"), f"{path.name} would go on after a failure"


def test_steps_are_commands_with_what_stands_below_them():
    page = "# A\n\n```console\n$ one\nout\n$ two \\\n> more\n```\n\n```sh\n$ not\n```\n"
    assert steps_of(page) == [Step("one", "out\n"), Step("two \\\nmore", "")]


def test_screens_are_steps_and_are_written_like_commands():
    page = "<!-- screen: 'rmqctl console' =STOP -->\n```text\nold\n```\n\n```console\n$ one\n```\n"
    assert steps_of(page) == [Step("screen 'rmqctl console' =STOP", "old\n"), Step("one", "")]
    new = written(page, [Outcome("new\n", 0), Outcome("two\n", 0)])
    assert new == page.replace("old", "new").replace("one\n", "one\ntwo\n")


def test_the_home_of_a_screen_moves_nothing():
    assert at_home(" x  /tmp/abc123/ann/store      14:02", "/tmp/abc123/ann") == (
        " x  /home/ann/store            14:02"
    )


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("a\n...\nd\n", "a\nb\n", False),
        ("stored 2026-01-01 00:00:00.000\n", "stored 2027-03-04 05:06:07.890\n", True),
        ("lag 5  age 1m3s\n", "lag 5    age 12ms\n", True),
        ("lag 5  age 1m3s\n", "lag 6  age 1m3s\n", False),
        ("7F0000010BDE18B4AAC2000000000000 x\n", "7F0000010BDE18B4AAC2ABCD00000001 x\n", True),
        ("order-7 at 1700000000000\n", "order-8 at 1700000000000\n", False),
        ("a (b)\n", "a  b\n", False),
        ("2 processes 11\n", "2 processes 4711\n", True),
        ("1.2.3.4@77#5\n", "9.9.9.9@1#99999\n", True),
        ("127.0.0.1@13046#63067554279912", "127.0.0.1@27060#1791468119087", True),  # no time
    ],
)
def test_what_differs_from_run_to_run_is_not_compared(shown, printed, same):
    assert is_shown(shown, printed) is same


def test_identifiers_of_users_are_compared_whole():
    text = "orders order-7 10.5 12 7d-topic %RETRY%g 3K\n"
    assert settled(text) == text


def test_a_terminal_answers_prompts_and_keeps_exit_codes(tmp_path):
    page = (
        "```console\n$ read -p 'Do it? [y/N] ' answer; echo $answer\nDo it? [y/N] y\n"
        "$ (exit 7)\n$ echo $?; X=5\n$ echo $X\n$ test -t 0 && test -t 1 && rmqctl --version\n```\n"
    )
    outcomes = run_page(page, tmp_path)
    assert outcomes[0] == Outcome("Do it? [y/N] y\ny\n", 0)
    assert outcomes[1] == Outcome("", 7)
    assert [outcome.printed for outcome in outcomes[2:4]] == ["7\n", "5\n"]
    assert outcomes[4].printed.startswith("rmqctl ")


def test_writing_keeps_what_is_right_and_replaces_the_rest():
    page = "x\n\n```console\n$ a\nTook 3ms\n$ b \\\n> c\nold\n```\ny\n"
    new = written(page, [Outcome("Took 5ms\n", 0), Outcome("new  \n", 0)])
    assert new == "x\n\n```console\n$ a\nTook 3ms\n$ b \\\n> c\nnew\n```\ny\n"
