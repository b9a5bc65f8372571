"""The examples print their expected lines, each on an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

PUSH = [
    "balances: {'ann': 70, 'bob': 60}",
    "billing has consumed 1 of %RETRY%billing",
    "billing has consumed 2 of Orders",
    "order-1: attempt 1: charged 30 to ann",
    "order-2: attempt 1: bob has 10, not 50",
    "order-2: attempt 2: charged 50 to bob",
]
ORDERLY = """\
order-1: created -> paid -> finished
order-2: created -> paid -> finished
order-3: created -> (paid failed) -> paid -> finished
order-4: created -> paid -> finished
order-5: created -> paid -> finished
order-6: created -> paid -> finished
"""
TRANSACTION = """\
order-1: COMMIT_MESSAGE
order-2: ROLLBACK_MESSAGE
order-3: UNKNOW
the broker asks about order-3: COMMIT_MESSAGE
consumers saw order-1 and order-3
"""
SKIP_HISTORY = """\
by-date: 110 delivered, 10 worked on
by-distance: 110 delivered, 10 worked on
by-moving-progress: 10 delivered, 10 worked on
"""
IDEMPOTENT = """\
sent: 100
first worker: killed when it had booked 40
second worker: 60 new messages and some repeats
booked: 100
"""


def output(name: str, folder: Path) -> str:
    """Run an example as its docstring says."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), str(folder / "store")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr  # warnings are the clients' to give
    return done.stdout


@pytest.mark.slow
@pytest.mark.conformance("E1", "H8", "H15")
def test_a_business_step_that_fails_comes_again(tmp_path):
    assert sorted(output("push.py", tmp_path).splitlines()) == PUSH


@pytest.mark.slow
@pytest.mark.conformance("F1", "F8")
def test_orders_are_created_paid_and_finished_in_order_although_a_payment_fails(tmp_path):
    assert output("orderly.py", tmp_path) == ORDERLY


@pytest.mark.slow
def test_transactions_are_committed_rolled_back_and_asked_about(tmp_path):
    assert sorted(output("transaction.py", tmp_path).splitlines()) == sorted(
        TRANSACTION.splitlines()
    )


@pytest.mark.slow
@pytest.mark.conformance("G11")
def test_history_is_skipped_in_three_ways(tmp_path):
    assert output("skip_history.py", tmp_path) == SKIP_HISTORY


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.conformance("I4", "E15", "G13")
def test_a_killed_consumer_repeats_and_its_books_are_right(tmp_path):
    assert output("idempotent_consumer.py", tmp_path) == IDEMPOTENT


def test_every_example_is_run_and_named_in_the_readme():
    here = Path(__file__).read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    nights = Path(__file__).with_name("test_nightly.py").read_text("utf-8")
    for path in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")):
        is_run = f'output("{path.name}"' in here or f'EXAMPLES / "{path.name}"' in nights
        assert is_run, path.name
        assert f"examples/{path.name})" in readme, path.name
