"""CSV of other programs: --key-field and --body-field name the columns of key and body."""

import json

import pytest

from tests.support.cli import run

TABLE = b'id,country,note\nA1,DE,"hello, one"\nA2,FR,two\n'


def sent(*options, table=TABLE):
    result = run("produce", "people", "--input", "csv", *options, stdin=table)
    assert result.code == 0, result.err
    rows = run("consume", "people", "-e", "-o", "json").json()
    own = {"CLUSTER", "UNIQ_KEY", "KEYS", "TAGS"}
    return [
        (
            row["keys"],
            row["body"],
            {name: value for name, value in row["properties"].items() if name not in own},
        )
        for row in rows
    ], result


def test_a_column_is_the_key_another_the_body_the_rest_are_properties(store):
    rows, result = sent("--key-field", "id", "--body-field", "note")
    assert rows == [
        (["A1"], "hello, one", {"country": "DE"}),
        (["A2"], "two", {"country": "FR"}),
    ]
    assert "become properties: country" in result.err


def test_several_columns_are_keys(store):
    rows, _ = sent("--key-field", "id", "--key-field", "country", "--body-field", "note")
    assert [keys for keys, _, _ in rows] == [["A1", "DE"], ["A2", "FR"]]


def test_the_whole_row_is_the_body(store):
    rows, _ = sent("--key-field", "id", "--body-field", "*")
    assert [(keys, json.loads(body), named) for keys, body, named in rows] == [
        (["A1"], {"country": "DE", "note": "hello, one"}, {}),
        (["A2"], {"country": "FR", "note": "two"}, {}),
    ]


def test_columns_that_are_fields_keep_their_meaning(store):
    table = b'tag,id,properties\nnew,A1,"{""p"":""q""}"\n'
    rows, _ = sent("--body-field", "*", table=table)
    assert [(json.loads(body), named) for _, body, named in rows] == [({"id": "A1"}, {"p": "q"})]
    assert run("consume", "people", "-e", "--tag", "new").lines


def test_columns_that_only_exports_have_stay_in_a_row_that_is_the_body(store):
    table = b"id,topic,queue_id,store_size,body_encoding,flag\nA1,news,7,big,json,5\n"
    rows, _ = sent("--key-field", "id", "--body-field", "*", table=table)
    row = {"topic": "news", "queue_id": "7", "store_size": "big", "body_encoding": "json"}
    assert [(keys, json.loads(body), named) for keys, body, named in rows] == [(["A1"], row, {})]
    [stored] = run("consume", "people", "-e", "-o", "json").json()
    assert stored["flag"] == 5


@pytest.mark.parametrize(
    ("options", "table", "sentence"),
    [
        ([], TABLE, "--body-field COLUMN names the column of the bodies"),
        (["--key-field", "nr"], TABLE, "has no 'nr' (it has id, country, note)"),
        (["--body-field", "nr"], TABLE, "has no 'nr'"),
        (["--body-field", "*"], b"id,body\n1,x\n", "has a body, and --body-field '*'"),
        (["--key-field", "id"], b"id,key,body\n1,2,x\n", "has keys, and --key-field"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(store, options, table, sentence):
    result = run("produce", "people", "--input", "csv", *options, stdin=table)
    assert result.code == 2
    assert sentence in result.err


def test_a_wrong_header_of_a_second_file_tells_what_is_stored(store, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"body\n1\n2\n")
    (tmp_path / "b.csv").write_bytes(b"bodyy\n3\n")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    result = run("produce", "t", *files, "--input", "csv")
    assert result.code == 8, result.err
    assert "b.csv: the CSV header has 'bodyy'" in result.err
    assert "the 2 messages before are stored" in result.err
    assert run("consume", "t", "-e", "-f", r"%s\n").lines == ["1", "2"]
    assert run("produce", "t", *files[::-1], "--input", "csv").code == 2


@pytest.mark.parametrize("quote", [b"", b'"'])
@pytest.mark.parametrize("command", ["produce t FILE --input csv", "message import FILE -t t"])
def test_a_record_of_csv_that_is_too_long_is_named_by_its_line(store, tmp_path, command, quote):
    (tmp_path / "t.csv").write_bytes(b"body\n1\n2\n" + quote + b"x" * (26 << 20) + b"\n3\n")
    command = command.replace("FILE", str(tmp_path / "t.csv"))
    result = run(*command.split())
    assert result.code == 8, result.err
    assert "line 4: " in result.err
    assert "; the 2 before it are sent, nothing after it" in result.err
    result = run(*command.split(), "--skip-invalid")
    assert result.code == 8
    assert "the first: line 4: " in result.err
    assert "; nothing after line 4 is read" in result.err


@pytest.mark.parametrize(
    "command", ["produce people --input csv", "message import - people --as csv"]
)
def test_a_column_with_a_name_that_brokers_reserve_is_refused(store, command):
    table = b"body,TTL,CLUSTER\nx,5,c\n"
    result = run(*command.split(), stdin=table)
    assert result.code == 2, result.err
    assert "the CSV header has 'TTL', a name that RocketMQ reserves; rename the" in result.err
    assert "become properties" not in result.err
    assert run(*command.split(), "--ignore-unknown", stdin=table).code == 0
    assert "TTL" not in run("consume", "people", "-e", "-o", "json").json()[0]["properties"]


def test_a_row_that_is_the_body_may_have_names_that_brokers_reserve(store):
    rows, _ = sent("--body-field", "*", table=b"id,TTL\nA1,5\n")
    assert json.loads(rows[0][1]) == {"id": "A1", "TTL": "5"}


def test_an_import_with_all_fields_keeps_a_column_with_a_reserved_name(store):
    run("produce", "old", "-S", store, stdin=b"x\n")
    header, row = run("message", "export", "--as", "csv", "-S", store).lines
    new = store.with_name("new")
    assert run("store", "init", new, "--small").code == 0
    table = f"{header},TTL\n{row},5\n".encode()
    given = ("message", "import", "-", "--as", "csv", "--keep-times", "-S", new)
    assert run(*given, stdin=table).code == 0
    [kept] = run("consume", "old", "-e", "-o", "json", "-S", new).json()
    assert kept["properties"]["TTL"] == "5"


def test_the_options_are_those_of_csv(store):
    result = run("produce", "people", "--key-field", "id", stdin=b"x\n")
    assert result.code == 2
    assert "--key-field needs --input csv" in result.err


def test_a_table_whose_columns_become_properties_names_the_option_for_the_key(store):
    _, result = sent("-k", "id", table=b"id,body\nA1,x\n")
    assert "become properties: id; --key-field COLUMN makes one the key" in result.err


def test_an_import_has_no_option_for_the_key_and_names_none(store, tmp_path):
    (tmp_path / "p.csv").write_bytes(b"id,body\nA1,x\n")
    result = run("message", "import", tmp_path / "p.csv", "-t", "people")
    assert "become properties: id" in result.err
    assert "--key-field" not in result.err


@pytest.mark.slow
def test_a_file_of_rows_that_is_read_by_lines_is_said_to_be(store, tmp_path):
    for name, kind in (("a.csv", "csv"), ("b.JSONL", "jsonl"), ("c.ndjson", "jsonl")):
        (tmp_path / name).write_bytes(b"x\n")
        said = f"each line is a message; --input {kind} reads keys"
        assert said in run("produce", "t", tmp_path / name).err
        assert "--input" not in run("produce", "t", "-D", r"\n", tmp_path / name).err
    (tmp_path / "d.txt").write_bytes(b"x\n")
    assert "--input" not in run("produce", "t", tmp_path / "d.txt").err


@pytest.mark.slow
def test_several_files_are_read_by_lines_and_that_is_said(store, tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(b"1\n2\n")
    files = [tmp_path / "a", tmp_path / "b"]
    by_line = run("produce", "docs", *files)
    assert "each line of the 2 files is a message; -D '' sends one message per file" in by_line.err
    assert "-D ''" not in run("produce", "docs", "-D", "", *files).err
    assert "-D ''" not in run("produce", "docs", "-D", r"\n", *files).err
    assert "-D ''" not in run("produce", "docs", files[0]).err
    assert len(run("consume", "docs", "-e", "-f", r"%o\n").lines) == 4 + 2 + 4 + 2
