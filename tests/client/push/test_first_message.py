"""What the first message of a cold process loads: its time is mostly modules."""

import subprocess
import sys

import pytest

from tests.support.cli import ROOT

PROBE = """
import runpy, sys
sys.argv[1:] = [sys.argv[2]]
runpy.run_path("benchmarks/programs/first_message.py", run_name="__main__")
print(*sys.modules)
"""


@pytest.mark.slow
def test_the_first_message_in_a_new_folder_loads_nothing_that_reads_computes_or_asks(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, "-", str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin", "HOME": "/"},
    )
    status, modules = done.stdout.splitlines()
    assert status == "SEND_OK"
    loaded = set(modules.split())
    assert "storage.coordination.processes" in loaded
    assert not loaded & {
        *("numpy", "hashlib", "base64", "client.hooks", "broker.members.broker_to_client"),
        *("storage.readonly", "broker.pull.pull", "storage.read.by_key"),
    }
