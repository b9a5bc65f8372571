"""The forms of a time: the table that help, ``explain time``, completion and errors show."""

from typing import Final, NamedTuple


class TimeForm(NamedTuple):
    """A form of a time."""

    example: str
    also: tuple[str, ...]
    """More examples of the form."""
    meaning: str
    completions: tuple[str, ...] = ()
    """What a shell offers."""


TIME_FORMS: Final = (
    TimeForm("now", ("currentTimestamp",), "the start of the command", completions=("now",)),
    TimeForm(
        "-15m",
        ("-1h30min", "-2 days", "1h", "1h ago", "2 days ago", "now-1h", "PT15M"),
        "so long before now; a day has 24 hours",
        completions=("-15m", "-1h", "-1d"),
    ),
    TimeForm("+15m", ("now+1h", "5min left"), "so long after now"),
    TimeForm("today", (), "00:00 of this day", completions=("today",)),
    TimeForm("yesterday", (), "00:00 of the day before", completions=("yesterday",)),
    TimeForm("tomorrow", (), "00:00 of the next day"),
    TimeForm(
        "09:30",
        ("09:30:15", "09:30:15.250", "3pm"),
        "that time of this day",
        completions=("09:30",),
    ),
    TimeForm(
        "yesterday 15:00",
        ("today 9am", "3 days ago 15:00", "yesterday 15:00 UTC"),
        "that time of that day; a zone may follow",
        completions=("yesterday 15:00",),
    ),
    TimeForm(
        "last friday",
        ("last friday 17:30", "last mon"),
        "the Friday before today, as GNU date",
        completions=("last friday",),
    ),
    TimeForm("friday", ("friday 17:30", "this friday"), "today, or the coming Friday, as GNU date"),
    TimeForm("next friday", (), "the Friday after today, as GNU date"),
    TimeForm("2026-01-31", ("2026/01/31", "20260131"), "00:00 of that day"),
    TimeForm(
        "2026-01-31 10:00",
        ("2026-01-31T10:00", "2026-01-31T10:00:00.250", "20260131100000"),
        "that time in the zone of --tz, else in the local one",
    ),
    TimeForm(
        "2026-01-31T10:00:00+01:00",
        ("2026-01-31T10:00Z", "2026-01-31 10:00 UTC", "2026-01-31 10:00 Europe/Berlin"),
        "that time in that zone",
    ),
    TimeForm(
        "31 Jan 2026 10:00",
        ("Jan 31 10:00", "Sat Jan 31 10:00:00 UTC 2026", "Sat, 31 Jan 2026 10:00:00 +0100"),
        "dates of logs and mails; without a year: of this year",
    ),
    TimeForm("2026-01-31#10:00:00:000", (), "mqadmin's form"),
    TimeForm(
        "@1767225600",
        ("1767225600", "1767225600000", "1767225600000000", "1767225600000000000"),
        "seconds, ms, us or ns since 1970: the unit that gives 1990 to 2200",
    ),
    TimeForm("0", (), "before every message"),
)

RULES: Final = (
    "Days, times of day and dates without a zone are in the zone of --tz, else in the local one. A "
    "zone is UTC, an offset, a name such as Europe/Berlin, or the local zone's own abbreviation. "
    "CET or EST alone is refused where it is not.",
    "Where the clock is put back, an hour occurs twice. Where it is put forward, an hour does not "
    "occur. A query warns and takes the first of the two, or the time as far after the change. A "
    "command that changes something, --where and --offset refuse such a time: write the offset.",
    "A command that changes something prints how it read the time, with the zone; a query does so "
    "with --verbose.",
    "Times before 1990 and after 2200 are refused.",
)
"""What holds for all forms, a paragraph each."""

TITLE: Final = "A time of an option, of --where, of a file or of a position (@TIME)."

SHORT: Final = ("-1h", "09:30", "'yesterday 15:00'")
"""A few forms, for the help of an option."""


def form_lines() -> tuple[tuple[str, str], ...]:
    """Each form with its meaning and the other ways to write it."""
    return tuple(
        (form.example, form.meaning + (f" (also {', '.join(form.also)})" if form.also else ""))
        for form in TIME_FORMS
    )


def some_forms() -> str:
    """A few forms, for the sentence about a text that is no time."""
    named = {"now", "-15m", "yesterday 15:00", "2026-01-31 10:00"}
    return ", ".join(form.example for form in TIME_FORMS if form.example in named)
