"""The token that continues a stopped search."""

from typing import NamedTuple

from rmqctl.errors import UsageProblem


class Token(NamedTuple):
    """The state of a stopped search: ``position`` in the log, and the search's fingerprint."""

    position: int
    fingerprint: int

    def __str__(self) -> str:
        return f"{self.position:x}-{self.fingerprint:08x}"

    @classmethod
    def parse(cls, text: str) -> "Token":
        """The token of a text; ValueError for another text."""
        position, dash, fingerprint = text.partition("-")
        try:
            if dash and len(fingerprint) == 8:
                return cls(int(position, 16), int(fingerprint, 16))
        except ValueError:
            pass
        raise ValueError(f"{text!r} is not a token of 'message search'")


def position_of(token: str | None, fingerprint: int, log_end: int) -> int | None:
    """The position of a token. UsageProblem for a token of another search or store."""
    if token is None:
        return None
    try:
        parsed = Token.parse(token)
    except ValueError as error:
        raise UsageProblem(f"--resume: {error}") from None
    if parsed.fingerprint != fingerprint:
        raise UsageProblem("--resume: the token belongs to another search")
    if parsed.position > log_end:
        raise UsageProblem("--resume: the token belongs to another store: this log is shorter")
    return parsed.position
