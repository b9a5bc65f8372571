"""A sync of delayOffset.json that cannot begin is made up for by the next one."""

import errno
import os

import pytest

from storage.configs.delay_offsets import DelayOffsetFile, delay_offset_file
from storage.errors import StoreNotWritableError


def test_without_a_free_descriptor_the_next_sync_tries_again(tmp_path, monkeypatch):
    file = DelayOffsetFile(tmp_path)
    file.write({1: 5})
    file.write({1: 6})

    def dup(fd):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as full:
        full.setattr(os, "dup", dup)
        with pytest.raises(StoreNotWritableError, match="Too many open files"):
            file.sync()
    file.sync()
    written = delay_offset_file(tmp_path)
    assert written.bak_path.read_bytes() == written.path.read_bytes()
    assert b"1:6" in written.path.read_bytes()
    file.close()
