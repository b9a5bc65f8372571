"""Files that a user was given and that are larger than such a file can be: exit 4, at once."""

import io
import os
import pty
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rmqctl.cli import given_file
from rmqctl.cli.given_file import MAX_GIVEN, read_given
from rmqctl.errors import CliError
from rmqctl.exit_codes import DAMAGED
from rmqctl.produce.sender import InvalidRecordError
from rmqctl.produce.sources import Input
from tests.support.cli import run, start

READERS = {
    "offset import": "offset import {}",
    "offset reset --from-file": "offset reset --from-file {}",
    "offset reset --expect": "offset reset -g g -t t --to-earliest --expect {}",
    "topic create --from-file": "topic create --from-file {}",
    "repair --expect": "store repair --expect {}",
    "lag report --compare": "lag report --compare {}",
    "settings": "config set output json --config {}",
}


@pytest.mark.parametrize("name", list(READERS))
@pytest.mark.slow
def test_a_file_of_a_terabyte_is_refused(tmp_path: Path, name: str) -> None:
    store = tmp_path / "s"
    assert run("store", "init", store).code == 0
    assert run("produce", "t", "-S", store, stdin=b"x\n").code == 0
    assert run("consume", "t", "-g", "g", "-e", "-S", store).code == 0
    given = tmp_path / "given.json"
    given.touch()
    os.truncate(given, 1 << 40)
    done = run(*READERS[name].format(given).split(), "-S", store)
    assert done.code in (2, 4), done
    if name.startswith(("offset", "topic", "settings")):
        assert done.code == (2 if name == "settings" else 4)
        assert str(MAX_GIVEN) in done.err


def test_a_quote_that_nothing_closes_makes_no_record_without_an_end(tmp_path: Path) -> None:
    given = tmp_path / "given.csv"
    given.write_bytes(b'body,tags\n"' + b"line\n" * 300)
    with pytest.raises(InvalidRecordError, match=r"^line 2: .*a quote is not closed"):
        list(Input([str(given)], b"\n", 1000).csv())
    assert len(list(Input([str(given)], b"\n", 2000).csv())) == 1


def test_records_before_a_quote_that_nothing_closes_are_read(tmp_path: Path) -> None:
    given = tmp_path / "given.csv"
    given.write_bytes(b'body\none\n"' + b"line\n" * 300)
    portions = Input([str(given)], b"\n", 1000).csv()
    assert next(portions).lines == [2]
    with pytest.raises(InvalidRecordError, match=r"^line 3: .*a quote is not closed"):
        next(portions)


@pytest.mark.parametrize("more", [0, 1])
def test_the_limit_is_the_last_size_that_is_taken(
    more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given_file, "MAX_GIVEN", 100)
    path = tmp_path / "file"
    path.write_bytes(b"x" * (100 + more))
    piped = SimpleNamespace(buffer=io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", piped)
    for given in (lambda: read_given(path), lambda: read_given("-", stdin=True)):
        if more:
            with pytest.raises(CliError, match="exceeds the limit of [0-9]+ bytes") as raised:
                given()
            assert str(raised.value).partition(" exceeds")[0] in (str(path), "standard input")
            assert raised.value.exit_code == DAMAGED
        else:
            assert given() == path.read_bytes()


def test_a_dash_is_a_file_where_standard_input_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_given("-")
    (tmp_path / "-").write_bytes(b"mine")
    assert read_given("-") == b"mine"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("message import -", b'{"topic": "t", "body": "x"}\n'),
        ("message import - --keep-times", b'{"topic": "t", "body": "x"}\n'),
        ("offset import - -g g -n", b"t,0,0\n"),
        ("offset reset -g g --from-file - -n", b"t,0,0\n"),
        ("offset diff file:- g", b"t,0,0\n"),
        ("topic create --from-file -", b"made\n"),
    ],
)
def test_what_is_typed_is_waited_for_with_a_word(store: Path, command: str, typed: bytes) -> None:
    run("produce", "t", "-q", stdin=b"x\n")
    run("consume", "t", "-g", "g", "-e", "-q", "--yes")
    terminal, inside = pty.openpty()
    with start(*command.split(), stdin=inside) as process:
        os.close(inside)
        os.write(terminal, typed + b"\x04")
        _, err = process.communicate(timeout=60)
    os.close(terminal)
    assert err.decode().count("reading from the terminal; Ctrl-D ends\n") == 1, err


@pytest.mark.parametrize("options", [(), ("--keep-times",)])
def test_a_file_and_a_pipe_are_read_without_a_word(
    store: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    lines = b'{"topic": "t", "body": "x"}\n'
    (tmp_path / "lines.jsonl").write_bytes(lines)
    for file in (tmp_path / "lines.jsonl", "-"):
        assert "terminal" not in run("message", "import", file, *options, stdin=lines).err
