import pytest

from rmqctl.parse.lists import parse_names, parse_property, parse_queues, unescape


def test_queues_are_ascending_and_without_duplicates():
    assert parse_queues("4,0,2-4") == (0, 2, 3, 4)
    assert parse_queues("3") == (3,)


@pytest.mark.parametrize("text", ["", "a", "1,", "3-1", "-1", "0-70000", "1-2-3"])
def test_malformed_queues_are_refused(text):
    with pytest.raises(ValueError, match="not a list of queues"):
        parse_queues(text)


def test_names_lose_blanks_and_empty_parts():
    assert parse_names("a, b,,c ") == ("a", "b", "c")


def test_a_property_is_split_at_its_first_equals_sign():
    assert parse_property("url=a=b") == ("url", "a=b")
    assert parse_property("empty=") == ("empty", "")
    for text in ("novalue", "=x", ""):
        with pytest.raises(ValueError, match="NAME=VALUE"):
            parse_property(text)


def test_escapes():
    assert unescape(r"a\n\t\r\0\\\x1Fz") == b"a\n\t\r\0\\\x1fz"
    assert unescape("\u00e9") == b"\xc3\xa9"
    assert unescape("") == b""
    with pytest.raises(ValueError, match="unknown escape"):
        unescape(r"\q")
