"""Tables of numbers by compiled code: what JSON says, or nothing; files read alike without it."""

import json
import random
from pathlib import Path

import pytest

from storage import native
from storage.configs import number_tables, offset_samples, progress_table
from storage.configs.checksummed_json import seal_body
from storage.configs.number_tables import number_table
from storage.configs.offset_samples import OffsetSamples
from storage.configs.progress_log import ProgressLog, _entries, table_line
from storage.configs.progress_rows import KnownRows
from storage.configs.progress_table import ProgressTable, QueueProgress
from storage.format.errors import JsonError
from storage.format.strict_json import loads_strict
from tests.support.compiled import compiled

pytestmark = pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")
PATH = Path("offsets.log")
NAMES = ["t@g", "%RETRY%g@g", "", "\u00e4\u4e2d\U0001f600", "a b", "x:{y},[0]"]


def a_table(rng, *, pairs):
    def number():
        return rng.choice([0, 1, 9, 10, 255, 10**17, 10**18, 2**63 - 1, rng.randrange(10**9)])

    def value():
        one = rng.choice([number(), number(), None])
        return [number(), one] if pairs else one

    return {
        name: {
            str(rng.randrange(10 ** rng.randrange(1, 9))): value()
            for _ in range(rng.choice([0, 1, 5]))
        }
        for name in rng.sample(NAMES, rng.randrange(len(NAMES)))
    }


def plain(table, *, pairs):
    return {
        name: {int(q): tuple(value) if pairs else value for q, value in row.items()}
        for name, row in table.items()
    }


def text_of(table):
    return json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("pairs", [False, True])
def test_a_table_is_what_json_says(pairs):
    rng = random.Random(1)
    for _ in range(300):
        table = a_table(rng, pairs=pairs)
        before, after = rng.choice([b"", b"[", b'{"n":1,']), rng.choice([b"", b"}", b',"x":0}'])
        text = before + text_of(table) + after
        found = number_table(text, len(before), tuple if pairs else None)
        assert found == (plain(table, pairs=pairs), len(text) - len(after))


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [False, True])
def test_a_changed_text_is_what_json_says_or_nothing(pairs):
    """Each byte that decides something, put anywhere, and everything cut off anywhere."""
    rng = random.Random(2)
    taken = 0
    for _ in range(4_000):
        text = bytearray(text_of(a_table(rng, pairs=pairs)))
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(text))
            change = rng.choice(["put", "add", "drop", "cut"])
            byte = rng.choice(b'0123456789{}[]",: -+.eE\\nul\x00\x1f\x7f\xff\xc3\xa4')
            if change == "put":
                text[at] = byte
            elif change == "add":
                text.insert(at, byte)
            elif change == "drop":
                del text[at]
            else:
                del text[at:]
            if not text:
                break
        found = number_table(bytes(text), 0, tuple if pairs else None)
        if found is None:
            continue
        taken += 1
        read = text[: found[1]]
        assert found[0] == plain(loads_strict(bytes(read)), pairs=pairs), bytes(text)
        assert text_of(json.loads(read.decode())) == read, (
            "another way to write it is left to others"
        )
    assert taken > 100


@pytest.mark.parametrize(
    "text",
    [
        b'{"t":{"0":1,"0":2}}', b'{"t":{},"t":{}}', b'{"t":{"00":1}}', b'{"t":{"0":01}}',
        b'{"t":{"1234567890":1}}', b'{"t":{"0":9223372036854775808}}', b'{"t":{"0":-1}}',
        b'{"t":{"0":1.0}}', b'{"t":{"0":1e3}}', b'{"t":{"0":true}}', b'{"t":{"0":nul}}',
        b'{"t": {"0":1}}', b'{"t":{"0":1},}', b'{"t":{"0":1,}}', b'{"t":{"0":1}', b'{"t":{"0":1',
        b'{"t":{"0":', b'{"t', b'{', b'', b'[]', b'{"\\u0041":{}}', b'{"\xff":{}}', b'{"t":null}',
    ],
)  # fmt: skip
def test_other_texts_are_left_to_the_general_way(text):
    assert number_table(text, 0, None) is None


def test_a_start_beyond_the_text_is_no_table():
    for start in (-1, 3, 1 << 40):
        assert number_table(b"{}", start, None) is None
    with pytest.raises(TypeError):
        number_table("{}", 0, None)  # type: ignore[arg-type]


def test_an_error_of_what_makes_values_is_raised():
    def fail(_):
        raise MemoryError

    with pytest.raises(MemoryError):
        number_table(b'{"t":{"0":[0,1]}}', 0, fail)


@pytest.fixture
def general(monkeypatch):
    """Leave everything to the general way."""

    def leave():
        for module in (number_tables, offset_samples, progress_table):
            monkeypatch.setattr(module, "number_table", native.nothing)

    return leave


def a_log(rng):
    table = ProgressTable(5)
    for number in range(rng.randrange(1, 120)):
        for queue_id in range(rng.randrange(90)):
            table.put(f"t{number}@g", queue_id, QueueProgress(rng.randrange(3), rng.randrange(99)))
    if rng.random() < 0.5:
        table.set_exported(table.offsets())
    lines = [table_line(table, 7, None)]
    log = ProgressLog(PATH, lines[0], 1, KnownRows)
    for number in range(rng.randrange(9)):
        rows = {f"t{number}@g": {q: QueueProgress(1, rng.randrange(10**6)) for q in range(5)}}
        line = log.commit_line(rows) if rng.random() < 0.8 else log.line_of({"exported": True})
        lines.append(line)
        log.note_written(line, rows if b"queues" in line else None)
    return b"".join(lines)


def content(log):
    return log.table.queues, log.table.exported, log.table.change_id, log.ending


@pytest.mark.slow
def test_a_log_of_progress_is_read_alike(general):
    rng = random.Random(3)
    logs = [a_log(rng) for _ in range(20)]
    mine = [content(ProgressLog(PATH, data, 1, KnownRows)) for data in logs]
    assert sum(len(data) > 32 << 10 for data in logs) > 3  # some have a table that is read by rows
    general()
    assert [content(ProgressLog(PATH, data, 1, KnownRows)) for data in logs] == mine


def test_a_commit_with_wrong_rows_is_judged_alike(general):
    """What compiled code does not take, the general way refuses or takes as before."""
    lines = []
    for rows in (
        '{"t@g":{"0":[0,-5]}}',
        '{"t@g":{"0":[0]}}',
        '{"t@g":{"0":7}}',
        '{"t@g":[]}',
        "{}",
    ):
        body = f'{{"n":8,"queues":{rows}}}'.encode()
        lines.append(seal_body(body))
    mine = list(_entries(lines))
    general()
    assert list(_entries(lines)) == mine


def test_samples_are_read_alike(tmp_path, general):
    rng = random.Random(4)
    samples = OffsetSamples(tmp_path)
    for minute in range(12):
        committed = {
            f"t{n}@g": {q: rng.randrange(99) for q in range(rng.randrange(9))} for n in range(5)
        }
        samples.append(
            committed, {f"t{n}": {0: 100 + minute} for n in range(5)}, 60_000 * (minute + 1)
        )
    mine = vars(samples.read(0))
    assert mine["_committed"]
    general()
    assert vars(samples.read(0)) == mine


def test_a_text_that_is_no_json_is_no_table_either():
    with pytest.raises(JsonError):
        loads_strict(b'{"t":{"0":01}}')


def test_the_offsets_of_a_row_are_those_of_the_plain_form():
    rng, compiled_form, taken = random.Random(7), compiled.offsets_in, 0
    for _ in range(2_000):
        ids = rng.sample(range(9), rng.randrange(6))
        values = [rng.choice([None, 0, 1, 2**63 - 1, rng.choice([-1, 5])]) for _ in ids]
        order = zip(rng.choice([ids, sorted(ids)]), values, strict=True)
        row = {queue_id: QueueProgress(0, offset) for queue_id, offset in order}
        plain = {queue_id: at for queue_id, (_, at) in sorted(row.items()) if at is not None}
        found = compiled_form(row)
        assert progress_table.offsets_in(row) == plain
        assert list(progress_table.offsets_in(row)) == list(plain)
        if found is not None:
            taken += 1
            assert list(found.items()) == list(plain.items())
            assert min(plain.values(), default=0) >= 0
    assert 500 < taken < 1_900
    for odd in (
        {0: QueueProgress(0, 2**63)},
        {2**63: QueueProgress(0, 1)},
        {0: (1,)},
        {"0": (0, 1)},
    ):
        assert compiled_form(odd) is None
    assert compiled_form([]) is None
