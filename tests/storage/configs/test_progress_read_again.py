"""The log of progress read again after a change: what it holds, and which rows are kept."""

import random
from pathlib import Path
from zlib import crc32

import pytest

from storage.configs import progress_log
from storage.configs.checksummed_json import body_of
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.errors import CorruptFileError

GROUPS = 12


def change(rng: random.Random, file: ProgressFile) -> None:
    """Commit or forget some progress, of groups that are there or are new."""
    places = [(f"T@g{rng.randrange(GROUPS)}", rng.randrange(3)) for _ in range(rng.choice([1, 3]))]
    if rng.random() < 0.3:
        file.move({place: rng.choice([None, rng.randrange(9)]) for place in places})
    else:
        file.commit({place: QueueProgress(0, rng.randrange(99)) for place in places})
    if rng.random() < 0.2:
        file.export()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_what_is_read_again_equals_a_first_reading(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    (tmp_path / "config").mkdir()
    writer, reader = ProgressFile(tmp_path), ProgressFile(tmp_path)
    for _ in range(60):
        change(rng, writer)
        before = dict(reader.read().queues) if rng.random() < 0.7 else {}
        change(rng, writer)
        again, first = reader.read(), ProgressFile(tmp_path).read()
        assert again.entry() == first.entry()
        for key, row in again.queues.items():
            assert row is before.get(key) or row != before.get(key)


@pytest.mark.parametrize("seed", range(2))
def test_a_large_file_that_is_read_first_is_what_a_small_one_is(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    (tmp_path / "config").mkdir()
    writer = ProgressFile(tmp_path)
    for number in range(40):
        change(rng, writer)
        if number == 20:  # as Java does when it starts: what its file has is taken over
            (tmp_path / "lock").write_bytes(b"")
        tables = []
        for large in (0, 1 << 60):
            monkeypatch.setattr(progress_log, "_LARGE", large)
            tables.append(ProgressFile(tmp_path).read())
        assert tables[0].entry() == tables[1].entry()
        assert tables[0].doubt == tables[1].doubt


@pytest.mark.parametrize("large", [0, 1 << 60])
def test_a_name_that_comes_twice_is_refused_as_by_a_first_reading(
    tmp_path: Path, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_log, "_LARGE", large)
    (tmp_path / "config").mkdir()
    writer, reader = ProgressFile(tmp_path), ProgressFile(tmp_path)
    for offset in range(2):  # from the second change on rows are compared
        writer.commit({(f"T@g{n}", 0): QueueProgress(0, offset) for n in range(GROUPS)})
        writer.export()  # else there are no rows that Java's file has
        reader.read()
    writer.commit({("T@g3", 0): QueueProgress(0, 7)})
    reader.read()
    writer.recover({}, lambda *_: None)  # writes a table
    body = body_of(writer.path.read_bytes())
    assert body is not None
    twice = body.replace(b'"T@g4"', b'"T@g3"', 1)
    assert twice != body
    line = b'{"crc":"%08x","entry":%s}\n' % (crc32(twice), twice)
    writer.path.write_bytes(line)
    for file in (reader, ProgressFile(tmp_path)):
        with pytest.raises(CorruptFileError, match="T@g3"):
            file.read()
