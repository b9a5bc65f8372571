"""The rules by which a time becomes an offset, as words of the command line."""

from storage.reading.timesearch import Boundary


def parse_boundary(text: str) -> Boundary:
    """``lower``, ``upper`` or ``nearest49``. ValueError for anything else."""
    try:
        return Boundary(text.lower())
    except ValueError:
        raise ValueError(f"{text!r} is not one of nearest49, lower, upper") from None
