"""Numbers of C are those of Python."""

import pytest

from storage.coordination.shared_state import Word
from tests.checks import native_numbers as checks


def test_the_headers_are_what_python_says():
    assert checks.main() == 0


def test_a_number_that_changes_is_found(tmp_path, monkeypatch, capsys):
    for name in checks.HEADERS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(checks.text(name))
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    assert checks.main() == 0
    monkeypatch.setattr(Word, "LOG_END", 11)
    assert checks.main() == 1
    assert "writing/appending_numbers.h; run `make numbers`" in capsys.readouterr().err


@pytest.mark.parametrize("name", checks.HEADERS)
def test_each_header_stands_alone(name):
    text = checks.text(name)
    assert text.startswith("/* Numbers of Python's modules")
    assert text.count("#ifndef") == text.count("#endif") == 1
