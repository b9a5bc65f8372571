"""Small records whose bodies inflate to many megabytes: every command takes little memory.

A message of 4 MiB, the most that a client sends by default, may be stored in 4 KiB, and a flipped
flag may make 60 MiB of a body that no client compressed.
"""

import os
import subprocess
import sys
import zlib

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.format.encode import MessageInner, prepare
from storage.format.properties import encode_properties
from storage.format.sys_flag import MessageSysFlag
from storage.store import MessageStore
from tests.support.cli import ROOT, run
from tests.support.examples import one_in

NOW = 1_792_616_340_000
HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
MANY, ONE = "many", "one"
"""Topics: 40 bodies of 4 MiB in each of two queues, one of 60 MiB."""
MOST_MIB = 220


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("large") / "s"
    MessageStore.create(root, SMALL_STORE)
    packed = MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
    properties = encode_properties({"KEYS": "k"})
    with EmbeddedBroker.open(root, clock=lambda: NOW) as broker:
        for topic, queues, count, body in (
            (MANY, 2, 40, b"a" * (4 << 20)),
            ("%DLQ%g", 1, 80, b"a" * (4 << 20)),
            (ONE, 1, 1, bytes(60 << 20)),
        ):
            body = zlib.compress(body, 9)
            assert broker.store is not None
            for queue_id in range(queues):
                records = [
                    MessageInner(
                        topic, queue_id, body, properties, NOW, HOST, HOST, 0, packed, keys=("k",)
                    )
                ] * count
                for record in records:
                    broker.store.put(prepare((record,)))
    assert run("topic", "create", "out", "-S", root).code == 0
    return root


_MEASURED = """
import sys
from pathlib import Path
from rmqctl import app

code = app.main(sys.argv[2:])
Path(sys.argv[1]).write_text(Path("/proc/self/status").read_text())
sys.exit(code)
"""


def peak_mib(root, line, tmp_path):
    """Most resident memory of a process that runs the command, and its exit code.

    Not by ru_maxrss, which counts the memory of the process that has started it.
    """
    words = line.format(new=tmp_path / "new").split()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(tmp_path / "status"), *words]
        + ["-S", str(root), "--no-input", "-q"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    status = (tmp_path / "status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10, done.returncode


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    one_in(
        5,
        [
            f"consume {MANY} -e",
            f"consume {MANY} -e -o csv",
            f"consume {MANY} -e -g new --from-where first",
            f"message export -t {MANY} --as parquet --save {{new}}.parquet",
            f"consume {MANY} -e --body hex -c 20",
            "dlq browse g --all -o jsonl",
            f"message export -t {MANY} --as jsonl",
            f"message query -t {MANY} --key k -o jsonl",
            f"message search -t {MANY} aaa --jobs 1 -o csv",
            f"consume {ONE} -e -o jsonl",
            f"message export -t {ONE} --as csv",
            f"consume {ONE} -e -o table",
            f"message query -t {ONE} --key k -o yaml",
            f"message query -t {ONE} --key k",
            "dlq export g",
        ],
    ),
)
def test_a_command_holds_no_more_than_some_bodies(root, line, tmp_path):
    peak, code = peak_mib(root, line, tmp_path)
    assert code == 0, (line, code)
    assert peak < (2 * MOST_MIB if "parquet" in line else MOST_MIB), line
