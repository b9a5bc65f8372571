"""The token that continues a stopped search."""

from typing import NamedTuple

from rmqctl.errors import UsageProblem

Times = tuple[int | None, int | None]
"""--from and --to of a search in epoch ms, None for an option that is not given."""


class Token(NamedTuple):
    """The state of a stopped search: ``position`` in the log, and the search's fingerprint.

    ``times`` are those of its first call: relative ones would be others in each call, and what was
    stored between them would be left out.
    """

    position: int
    fingerprint: int
    times: Times = (None, None)

    def __str__(self) -> str:
        text = f"{self.position:x}-{self.fingerprint:08x}"
        if self.times == (None, None):
            return text
        return ".".join([text, *("" if time is None else f"{time:x}" for time in self.times)])

    @classmethod
    def parse(cls, text: str) -> "Token":
        """The token of a text; ValueError for another text."""
        place, *times = text.split(".")
        position, dash, fingerprint = place.partition("-")
        try:
            if dash and len(fingerprint) == 8 and len(times) in (0, 2):
                first, last = [int(time, 16) if time else None for time in times] or (None, None)
                return cls(int(position, 16), int(fingerprint, 16), (first, last))
        except ValueError:
            pass
        raise ValueError(f"{text!r} is not a token of 'message search'")


def token_of(text: str | None, given: Times) -> Token | None:
    """The token of a call whose own times are ``given``. UsageProblem for another text, and for a
    token of an rmqctl that noted no times."""
    if text is None:
        return None
    try:
        token = Token.parse(text)
    except ValueError as error:
        raise UsageProblem(f"--resume: {error}") from None
    if token.times == (None, None) != given:
        raise UsageProblem(
            "--resume: the token has no times, and this search has: it is of another search or of "
            "an older rmqctl; start the search again without it"
        )
    return token


def position_of(token: Token | None, fingerprint: int, log_end: int) -> int | None:
    """The position of a token. UsageProblem for a token of another search or store."""
    if token is None:
        return None
    if token.fingerprint != fingerprint:
        raise UsageProblem("--resume: the token belongs to another search")
    if token.position > log_end:
        raise UsageProblem("--resume: the token belongs to another store: this log is shorter")
    return token.position
