"""Modules that are loaded when they are used, in processes in which none is loaded yet."""

import subprocess
import sys

import pytest

from tests.support.cli import ROOT

BEGIN = """
import sys
from rmqctl.late_modules import late

for name in ("statistics", "user"):
    sys.modules.pop(name, None)
import types

USER = types.ModuleType("user")
TEXT = "import statistics\\nfrom statistics import mean, NormalDist"
with late(("statistics",)):
    exec(TEXT, USER.__dict__)
assert "statistics" not in sys.modules, "it was loaded"
"""


def said(text):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + text],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin", "HOME": "/"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("use", "answer"),
    [
        ("USER.mean([1, 3])", "2"),
        ("USER.statistics.mean([1, 3])", "2"),
        ("USER.NormalDist(5).mean", "5.0"),
        ("USER.NormalDist.from_samples([1, 3]).mean", "2.0"),
        ("isinstance(USER.NormalDist(1), USER.statistics.NormalDist)", "True"),
    ],
)
def test_the_first_use_loads_it(use, answer):
    assert said(f"print({use}, 'statistics' in sys.modules)") == [answer, "True"]


def test_an_import_after_the_block_gives_the_module_itself():
    real = "import statistics; print(type(statistics).__name__, statistics.mean([1, 3]))"
    assert said(real) == ["module", "2"]


def test_a_use_within_the_block_loads_it_too():
    within = """
with late(("statistics",)):
    from statistics import mean
    print(mean([1, 3]))
import statistics
print(statistics.mean is sys.modules["statistics"].mean, type(statistics).__name__)
"""
    assert said(within) == ["2", "True", "module"]


def test_what_is_loaded_stays_as_it_is():
    loaded = """
import statistics
with late(("statistics",)):
    import statistics as again
print(again is statistics, again is sys.modules["statistics"])
"""
    assert said(loaded) == ["True", "True"]
