"""What standard output makes of text that UTF-8 cannot hold."""

import io

from rmqctl.output.stdout import Stdout
from tests.support.cli import run


def test_bytes_come_back_and_half_of_a_pair_is_a_question_mark():
    raw = io.BytesIO()
    text = io.TextIOWrapper(raw, "utf-8", write_through=True)
    out = Stdout(text)
    out.write("a \udcff \ud800 \udc7f\n")
    out.flush()
    assert raw.getvalue() == b"a \xff ? ?\n"


def test_half_of_a_pair_in_a_line_of_input_is_named(store):
    result = run("produce", "t", "--input", "jsonl", stdin=b'{"body":"\\ud800"}\n')
    assert result.code == 2
    assert "line 1: is not JSON: a text in it has half of a surrogate pair;" in result.err
