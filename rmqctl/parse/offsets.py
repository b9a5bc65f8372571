"""Offsets and distances of a reset, as they are typed."""


def parse_offset(text: str) -> int:
    """An offset; ValueError for anything but a number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not an offset (a number from 0 on)")
    return int(text)


def parse_shift(text: str) -> int:
    """A number of messages with or without a sign; ValueError for anything else."""
    digits = text.removeprefix("+").removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or text.startswith("+-"):
        raise ValueError(f"{text!r} is not a number of messages (such as -100 or +5)")
    return int(text)
