"""Compiled code and its references give the same answers, of whole and of damaged records."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hatch_build import MODULES, compile_native
from storage.as_of import AsOfBounds
from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.layout import PHYSICAL_OFFSET_POSITION
from storage.format.message import MessageExt
from storage.format.names import file_name
from storage.format.properties import parse_properties_pure
from storage.log.record_reader import UNUSUAL, QueueKey
from storage.read.by_key import KeyReader
from storage.read.message_columns import ColumnBatch
from storage.readonly import StoreView
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.examples import examples
from tests.support.hand_made import START_MS, TINY, HandMade

ROOT = Path(__file__).parents[3]
CONFIG = TINY.with_(mapped_file_size_consume_queue=2000, mapped_file_size_commit_log=4096)
if compiled is not None:
    compiled.bind(MessageExt)
FIELDS = [
    name for name in (*MessageExt.__slots__, "topic", "flag") if name not in ("_added", "_stored")
]


@pytest.mark.long  # the wheel of tests/test_wheel.py is compiled, too
def test_where_there_is_a_compiler_the_loops_are_compiled(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        assert compiled is None or (ROOT / "storage/native/_compiled.abi3.so").exists()
        return
    for folder in MODULES:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.so"))
    assert compile_native(tmp_path) == ""
    assert all((tmp_path / folder / "_compiled.abi3.so").exists() for folder in MODULES)


def test_what_can_not_be_compiled_is_told(tmp_path: Path) -> None:
    assert "no input files" in compile_native(tmp_path) or shutil.which("cc") is None


def _compiled_with(pure: str) -> str:
    program = "from storage import native; print(native.compiled)"
    environment = {**os.environ, "RMQCTL_PURE": pure}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("pure", ["1", "true", "YES"])
def test_without_them_everything_is_pure(pure: str) -> None:
    assert _compiled_with(pure) == "None\n"


@needs_compiled
@pytest.mark.parametrize("pure", ["", "0", "false", "No", "off"])
def test_a_switch_that_is_off_leaves_them_in(pure: str) -> None:
    assert "_compiled" in _compiled_with(pure)


def test_the_compiler_of_the_environment_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    compiler = tmp_path / "my cc"
    compiler.write_text(f'#!/bin/sh\necho "$@" > {said}; exit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", f"'{compiler}' -flto")
    compile_native(tmp_path)
    assert said.read_text().startswith("-flto -O2 ")
    monkeypatch.setenv("CC", str(tmp_path / "none"))
    assert "none" in compile_native(tmp_path)


@pytest.mark.parametrize("said", ["false", "'open"])
def test_a_compiler_that_says_nothing_has_not_compiled(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", said)
    for folder in MODULES:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "_compiled.abi3.so").write_bytes(b"of other sources")
    assert compile_native(tmp_path) != ""
    assert not list(tmp_path.rglob("*.so"))


@needs_compiled
@given(st.binary(max_size=60) | st.text("\x01\x02a\u00e9\u20ac", max_size=20).map(str.encode))
def test_properties_are_parsed_alike(data: bytes) -> None:
    assert compiled.parse_properties(data) == parse_properties_pure(data)


Sent = tuple[str, int, bytes, str | None, int]
"""Topic, queue id, body, tag, version."""
MESSAGES: st.SearchStrategy[list[Sent]] = st.lists(
    st.tuples(
        st.sampled_from(["T", "topic-" + "x" * 120, "na\u00efve"]),
        st.integers(0, 1),
        st.binary(max_size=40),
        st.sampled_from([None, "tag"]),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=30,
)
DAMAGE = st.lists(st.tuples(st.integers(0, 8000), st.integers(0, 255)), max_size=3)
in_one_folder = settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def damaged_store(root: Path, messages: list[Sent], damage: list[tuple[int, int]]) -> HandMade:
    """Two keys each; then single bytes of the log have other values, given as offset and value."""
    made = HandMade(CONFIG)
    for topic, queue_id, body, tags, version in messages:
        keys = ("all", f"key-{len(body) % 3}")
        made.put(topic, queue_id, body, tags=tags, keys=keys, version=version)
    made.write(root)
    for place, value in damage:
        number, at = divmod(place, CONFIG.mapped_file_size_commit_log)
        put_byte(sorted((root / "commitlog").iterdir())[number : number + 1], at, value)
    return made


def put_byte(files: list[Path], place: int, value: int) -> None:
    for path in files:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(bytes((value,)))


@contextmanager
def damaged_view(
    folders: pytest.TempPathFactory, messages: list[Sent], damage: list[tuple[int, int]]
) -> Iterator[tuple[StoreView, HandMade]]:
    """A view of such a store in a folder of its own."""
    root = folders.mktemp("compiled") / "store"
    made = damaged_store(root, messages, damage)
    with StoreView.open(root, CONFIG) as view:
        yield view, made


@pytest.mark.slow
@needs_compiled
@in_one_folder
@given(
    messages=MESSAGES,
    damage=DAMAGE,
    start=st.integers(0, 10),
    count=st.integers(1, 33),
    byte_limit=st.integers(0, 4000),
)
def test_runs_of_records_are_read_alike(
    messages: list[Sent],
    damage: list[tuple[int, int]],
    start: int,
    count: int,
    byte_limit: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with damaged_view(tmp_path_factory, messages, damage) as (view, made):
        for topic, queue_id in {(m.topic, m.queue_id) for m in made.messages}:
            end = view.max_offset_in_queue(topic, queue_id)
            data = view.unit_bytes(topic, queue_id, min(start, end), end)
            reader, key = view._records, QueueKey(topic, queue_id)
            if key.topic_field is None or len(data) < CQ_STORE_UNIT.size:
                continue
            found, size = reader.read_run(data, key, start, count, byte_limit)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(native, "compiled", None)
                pure, pure_size = reader.read_run(data, key, start, count, byte_limit)
            assert [values(message) for message in found] == [values(m) for m in pure]
            assert size == pure_size


@pytest.mark.slow
@needs_compiled
@in_one_folder
@given(messages=MESSAGES, damage=DAMAGE, cut=st.integers(0, 300))
def test_single_records_are_read_alike(
    messages: list[Sent],
    damage: list[tuple[int, int]],
    cut: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with damaged_view(tmp_path_factory, messages, damage) as (view, made):
        reader = view._records
        for message, (*_, version) in zip(made.messages, messages, strict=True):
            offset = message.commitlog_offset
            position = offset % 4096
            file = view.files.log.at(offset - position)
            assert file is not None
            for limit in (4096, position + message.size, position + cut):
                found = compiled.read_at(file.view, position, limit, offset, UNUSUAL)
                pure = reader._look(file, position, limit, offset)
                plain = not damage and version == 1 and limit - position > cut
                assert found is not None or not plain
                if found is not None:
                    assert pure is not None
                    assert values(found) == values(pure)
            assert compiled.read_at(file.view, position, 4096, offset + 1, UNUSUAL) is None


OF_ONE_QUEUE = st.lists(
    st.tuples(st.just("T"), st.just(0), st.binary(max_size=40), st.just("tag"), st.just(1)),
    min_size=20,
    max_size=60,
)


@pytest.mark.slow
@needs_compiled
@in_one_folder
@given(
    messages=OF_ONE_QUEUE | MESSAGES,
    damage=st.lists(st.tuples(st.integers(0, 8000), st.integers(0, 255)), max_size=1),
    start=st.integers(0, 5),
    count=st.integers(1, 60),
    max_bytes=st.sampled_from((1, 300, 1500, 3000, 1 << 20)),
)
def test_columns_are_read_alike(
    messages: list[Sent],
    damage: list[tuple[int, int]],
    start: int,
    count: int,
    max_bytes: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with damaged_view(tmp_path_factory, messages, damage) as (view, made):
        for queue in {(m.topic, m.queue_id) for m in made.messages}:
            found = columns(view.read_column(*queue, start, count, max_bytes))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(native, "compiled", None)
                assert columns(view.read_column(*queue, start, count, max_bytes)) == found


@pytest.mark.parametrize("form", [compiled, None])
def test_a_record_that_knows_another_place_is_in_no_column(
    form: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", form)
    made = damaged_store(tmp_path / "store", [("T", 0, b"body", None, 1)] * 30, [])
    place = made.messages[20].commitlog_offset
    with (tmp_path / "store/commitlog" / file_name(0)).open("r+b") as file:
        file.seek(place + PHYSICAL_OFFSET_POSITION)
        file.write((place + 4096).to_bytes(8, "big"))  # as if it lay in the next file
    with StoreView.open(tmp_path / "store", CONFIG) as view:
        found = view.read_column("T", 0, 0, 30)
        assert list(found.queue_offsets) == [*range(20), *range(21, 30)]


@pytest.mark.slow
@needs_compiled
@in_one_folder
@given(
    messages=MESSAGES,
    damage=st.lists(st.tuples(st.integers(0, 8000), st.integers(0, 255)), max_size=1),
    index_damage=st.none() | st.tuples(st.integers(0, 900), st.integers(0, 255)),
    seconds=st.integers(0, 32),
    times=st.tuples(st.integers(-1, 20), st.integers(10, 40)),
    most=st.integers(0, 70),
)
def test_messages_of_a_key_are_found_alike(
    messages: list[Sent],
    damage: list[tuple[int, int]],
    index_damage: tuple[int, int] | None,
    seconds: int,
    times: tuple[int, int],
    most: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Up to some moment; all files are mapped, as they are after a while."""
    with damaged_view(tmp_path_factory, messages, damage) as (view, made):
        index_files = sorted((view.root / "index").iterdir())
        if index_damage is not None:
            put_byte(index_files[-1:], *index_damage)
        then = AsOfBounds(view, START_MS + seconds * 1000)
        keys = KeyReader(view.root, view.config, then, view._records, follow_slots=True)
        begin, end = (START_MS + time * 1000 for time in times)
        keys.messages("T", "all", 1, begin, end)
        for stored in made.messages:
            view.look_message_by_offset(stored.commitlog_offset)
        is_full = 2 * len(messages) % (CONFIG.max_index_num - 1) == 0
        plain = not damage and index_damage is None and all(row[4] == 1 for row in messages)
        for topic in {stored.topic for stored in made.messages}:
            for key in ("all", "key-1", "none", "\ud800"):
                asked = (topic, key, most, begin, end)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(native, "compiled", compiled)  # RMQCTL_PURE may hide it
                    found = keys._usual(*asked)
                    patch.setattr(native, "compiled", None)
                    pure = keys.messages(*asked)
                assert found is not None or is_full or not plain or key == "\ud800"
                if found is not None:
                    assert found[1:] == pure[1:]
                    assert [values(one) for one in found[0]] == [values(one) for one in pure[0]]


@needs_compiled
def test_what_is_no_store_is_refused() -> None:
    no_files: dict[int, object] = {}
    asked = ("T", "k", 0, 1, 1, 1, no_files, 4096, 1, UNUSUAL)
    assert compiled.query_key((), 7, 40, *asked) is None
    for files, slots in (([], 7), ((), 0), ((), 1 << 31)):
        with pytest.raises(ValueError, match="no files"):
            compiled.query_key(files, slots, 40, *asked)
    with pytest.raises(TypeError, match="13 arguments"):
        compiled.query_key((), 7, 40)


def columns(batch: ColumnBatch) -> list[object]:
    parts = [getattr(batch, field.name) for field in fields(batch)]
    return [part if isinstance(part, int | str) else list(part) for part in parts]


@needs_compiled
@pytest.mark.parametrize("units", [bytes(20), b"\x7f" * 20, b"\x80" + bytes(19), b"\xff" * 45])
def test_units_that_name_nothing_give_no_bodies(units: bytes) -> None:
    log = memoryview(bytes(4096))
    for first in (0, 4096, (1 << 63) - 4096):
        assert compiled.read_bodies(units, log, first, b"\1T", 0, 0, 1000, UNUSUAL) is None
        assert compiled.read_run(units, log, first, "T", b"\1T", 0, 0, 9, 99, UNUSUAL) == ([], 0)


@needs_compiled
@pytest.mark.parametrize(("position", "limit"), [(-1, 4096), (4096, 4096), (0, 5000), (9999, 1)])
def test_nothing_is_read_outside_of_a_file(position: int, limit: int) -> None:
    log = memoryview(b"\0" * 4096)
    assert compiled.read_at(log, position, limit, position, UNUSUAL) is None


def values(message: MessageExt) -> list[object]:
    return [getattr(message, name) for name in FIELDS]


@pytest.mark.long
def test_all_that_is_read_is_read_by_the_pure_forms_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long"),
            *("tests/storage/read", "tests/storage/format", "tests/broker/pull/test_pull.py"),
            f"--basetemp={tmp_path / 'pure'}",
        ],
        cwd=ROOT,
        env={**os.environ, "RMQCTL_PURE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
