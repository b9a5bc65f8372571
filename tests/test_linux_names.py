"""The check of Linux's calls finds each of them outside of its room."""

from pathlib import Path

import pytest

from tests.checks import linux_names as checks

PYTHON = """\
\"\"\"os.fdatasync and /proc are named.\"\"\"
import os, mmap
from fcntl import F_OFD_SETLK
os.fdatasync(1)
name = f"/proc/{1}/stat"
mmap.mmap.madvise(mmap.MADV_POPULATE_WRITE)
mmap.MADV_RANDOM
os.open("/dev/null", os.O_RDONLY | os.O_TMPFILE)
"""
C = """\
/* fallocate is
 * named */
static int a = fallocate(1, 0, 0, 1);
#ifdef __linux__
syscall(SYS_futex);
"""


@pytest.mark.slow
def test_no_module_names_a_call_that_not_every_system_has() -> None:
    assert checks.main() == 0


def test_each_such_name_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (checks.ROOM, "storage/native/common", "storage/files"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / checks.ROOM / "room.py").write_text(PYTHON)
    (tmp_path / checks.HEADER).write_text(C)
    assert checks.main(tmp_path) == 0
    (tmp_path / "storage/files/other.py").write_text(PYTHON)
    (tmp_path / "storage/native/other.c").write_text(C)
    assert checks.main(tmp_path) == 1
    found = capsys.readouterr().err.splitlines()
    assert sorted(line.partition(" belongs")[0] for line in found) == [
        "storage/files/other.py:3: fcntl.F_OFD_SETLK",
        "storage/files/other.py:4: os.fdatasync",
        "storage/files/other.py:5: /proc/",
        "storage/files/other.py:6: mmap.MADV_POPULATE_WRITE",
        "storage/files/other.py:8: os.O_TMPFILE",
        "storage/native/other.c:3: fallocate",
        "storage/native/other.c:4: __linux__",
        "storage/native/other.c:5: SYS_futex",
        "storage/native/other.c:5: syscall",
    ]
