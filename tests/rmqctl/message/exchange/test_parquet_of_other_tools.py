"""Parquet that other programs have written: properties in each form of a map, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.format.message import RESERVED_PROPERTIES
from storage.readonly import StoreView
from tests.support.aged_store import fill
from tests.support.cli import Result, run
from tests.support.same_records import all_messages

TEXT = pa.string()
MAP = pa.map_(TEXT, TEXT)
LIST = pa.list_(pa.struct([("key", TEXT), ("value", TEXT)]))
FORMS = [
    pytest.param(MAP, [("city", "Ulm"), ("ab", "c")], id="map"),
    pytest.param(
        LIST, [{"key": "city", "value": "Ulm"}, {"key": "ab", "value": "c"}], id="list of entries"
    ),
    pytest.param(
        pa.struct([("city", TEXT), ("ab", TEXT), ("none", TEXT)]),
        {"city": "Ulm", "ab": "c", "none": None},
        id="struct",
    ),
]


def written(file: Path, name: str, kind: pa.DataType, values: list[Any]) -> Path:
    """A file with a row for each value in a column of this type."""
    bodies = [b"body %d" % number for number in range(len(values))]
    columns = {"body": pa.array(bodies, pa.binary()), name: pa.array(values, kind)}
    parquet.write_table(pa.table(columns), file)
    return file


def imported(
    tmp_path: Path, file: Path, *options: str
) -> tuple[Result, list[tuple[bytes, dict[str, str]]]]:
    """The result of an import, and bodies and properties of what it stored."""
    root = tmp_path / "target"
    create_store(root, SMALL_STORE)
    result = run("message", "import", file, "--topic", "t", "-S", root, *options)
    with StoreView.open(root) as view:
        return result, [(message.body, dict(message.properties)) for message in all_messages(view)]


def user_properties(properties: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name not in RESERVED_PROPERTIES}


@pytest.mark.parametrize("name", ["properties", "headers"])
@pytest.mark.parametrize(("kind", "value"), FORMS)
def test_each_form_of_a_map_is_taken(tmp_path, name, kind, value):
    file = written(tmp_path / "x.parquet", name, kind, [value, None])
    result, messages = imported(tmp_path, file)
    assert result.code == 0, result.err
    by_body = {body: user_properties(properties) for body, properties in messages}
    assert by_body == {b"body 0": {"city": "Ulm", "ab": "c"}, b"body 1": {}}


def test_headers_may_be_names_and_values_in_turn(tmp_path):
    value = ["city", "Ulm", "ab", "c"]
    file = written(tmp_path / "x.parquet", "headers", pa.list_(TEXT), [value])
    result, ((_, properties),) = imported(tmp_path, file)
    assert result.code == 0, result.err
    assert user_properties(properties) == {"city": "Ulm", "ab": "c"}


@pytest.mark.parametrize(("kind", "value"), FORMS[:2])
def test_an_export_that_another_program_wrote_again_keeps_its_times(tmp_path, kind, value):
    source = tmp_path / "source"
    fill(source, ['{"at":"-1h","topic":"t","body":"x","properties":{"city":"Ulm","ab":"c"}}'])
    file = tmp_path / "x.parquet"
    assert run("message", "export", "-S", source, "--save", file).code == 0
    table = parquet.read_table(file)
    place = table.column_names.index("properties")
    (pairs,) = table.column(place).to_pylist()
    again: list[Any] = pairs
    if isinstance(value[0], dict):
        again = [{"key": name, "value": text} for name, text in pairs]
    parquet.write_table(table.set_column(place, "properties", pa.array([again], kind)), file)
    result, ((_, properties),) = imported(tmp_path, file, "--keep-times")
    assert result.code == 0, result.err
    assert properties == dict(pairs)


def test_a_property_that_is_null_is_none_with_times_that_are_kept_too(tmp_path):
    source = tmp_path / "source"
    fill(source, ['{"at":"-1h","topic":"t","body":"x","properties":{"city":"Ulm"}}'])
    file = tmp_path / "x.parquet"
    assert run("message", "export", "-S", source, "--save", file).code == 0
    table = parquet.read_table(file)
    place = table.column_names.index("properties")
    (pairs,) = table.column(place).to_pylist()
    kind = pa.struct([(name, TEXT) for name in ("none", *dict(pairs))])
    column = pa.array([{"none": None, **dict(pairs)}], kind)
    parquet.write_table(table.set_column(place, "properties", column), file)
    result, ((_, properties),) = imported(tmp_path, file, "--keep-times")
    assert result.code == 0, result.err
    assert properties == dict(pairs)


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (TEXT, "city=Ulm", "its properties are not an object"),
        (TEXT, "", "its properties are not an object"),
        (pa.int64(), 7, "its properties are not an object"),
        (pa.list_(TEXT), ["ab", "cd"], "its properties are not an object"),
        (
            pa.list_(pa.struct([("name", TEXT), ("value", TEXT)])),
            [{"name": "city", "value": "Ulm"}],
            "its properties are not an object",
        ),
        (pa.map_(pa.int64(), TEXT), [(1, "Ulm")], "a name of its properties is 1, not a text"),
        (MAP, [("city", "Ulm"), ("city", "Bonn")], "has the property 'city' twice"),
        (
            LIST,
            [{"key": "city", "value": "Ulm"}, {"key": "city", "value": "Bonn"}],
            "has the property 'city' twice",
        ),
        (
            LIST,
            [{"key": None, "value": "Ulm"}],
            "a name of its properties is None, not a text",
        ),
    ],
)
def test_what_is_no_map_is_refused_and_only_its_row(tmp_path, kind, value, sentence):
    file = written(tmp_path / "x.parquet", "properties", kind, [None, value, None])
    result, messages = imported(tmp_path, file, "--skip-invalid")
    assert result.code == 8, result.err
    assert f"left out 1 message that cannot be sent; the first: line 2: {sentence}" in result.err
    assert sorted(body for body, _ in messages) == [b"body 0", b"body 2"]


def test_a_file_without_properties_has_none_to_keep(tmp_path):
    """As of JSON lines: a message without UNIQ_KEY is no message of an export."""
    source, file = tmp_path / "source", tmp_path / "x.parquet"
    fill(source, ['{"at":"-1h","topic":"t","body":"x"}'])
    assert run("message", "export", "-S", source, "--save", file).code == 0
    parquet.write_table(parquet.read_table(file).drop_columns(["properties"]), file)
    result, messages = imported(tmp_path, file, "--keep-times")
    assert (result.code, messages) == (2, [])
    assert "line 1: has no properties, and --keep-times needs every field" in result.err
