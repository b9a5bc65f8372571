"""Output of ``lag check``: the text of a Nagios plug-in, and Prometheus's format.

Names may contain any characters from a file: those with a meaning for the reader are escaped.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from analytics.lag.health import Health
from rmqctl.admin.lag.check_rows import CheckedGroup, CheckResult, Verdict
from rmqctl.admin.lag.limits import Limit, Limits
from rmqctl.output.values import escape_controls


def nagios(result: CheckResult, limits: Limits) -> str:
    """One line with performance data, then a line for each group that is not OK.

    ``|`` separates text from data, so it is ``\\x7c`` in a name.
    """
    data = " ".join(_performance(result.groups, limits))
    text = f"LAG {result.verdict} - {_text(result.summary)}{' | ' if data else ''}{data}\n"
    for group in result.groups:
        if group.verdict is not Verdict.OK:
            reasons = ", ".join(group.reasons)
            text += _text(f"{group.verdict}: {group.group} in {group.topic}: {reasons}") + "\n"
    return text


def unknown(sentence: str) -> str:
    """The output of a check that failed."""
    return f"LAG {Verdict.UNKNOWN} - {_text(' '.join(sentence.split()))}\n"


def _text(text: str) -> str:
    return escape_controls(text).replace("|", "\\x7c")


def _performance(groups: Sequence[CheckedGroup], limits: Limits) -> Iterator[str]:
    for group in groups:
        name = f"{group.group}@{group.topic}"
        yield _datum(f"{name} lag", _known(group, group.lag), "", limits.lag)
        age = 0 if group.lag == 0 else group.oldest_unread_age_ms
        yield _datum(f"{name} age", _known(group, age), "ms", limits.age)
    for name, dlq in {group.group: group.dlq for group in groups}.items():
        yield _datum(f"{name} dlq", dlq, "", limits.dlq)


def _datum(label: str, value: int | None, unit: str, limit: Limit) -> str:
    """'label'=value[unit];warn;crit;min: quotes are doubled, an equals sign is not allowed."""
    quoted = _text(label).replace("'", "''").replace("=", "\\x3d")
    warn, crit = ("" if bound is None else str(bound) for bound in limit)
    return f"'{quoted}'={'U' if value is None else f'{value}{unit}'};{warn};{crit};0"


T = TypeVar("T", int, float)


def _known(group: CheckedGroup, value: T | None) -> T | None:
    """The value; None if it is partly unknown, as a part is no gauge of the whole."""
    return None if group.unknown else value


class _Metric(NamedTuple):
    name: str
    help: str
    value: Callable[[CheckedGroup], float | None]
    by_topic: bool = True


_METRICS: Final = (
    _Metric("lag_messages", "Unread messages of the group", lambda g: _known(g, g.lag)),
    _Metric(
        "lag_bytes",
        "Bytes of the unread messages that are still stored",
        lambda g: _known(g, g.lag_bytes),
    ),
    _Metric(
        "oldest_unread_age_seconds",
        "Age of the oldest unread message, 0 if there is none",
        lambda g: _known(g, 0 if g.lag == 0 else _seconds(g.oldest_unread_age_ms)),
    ),
    _Metric("messages_in_per_second", "Messages stored per second", lambda g: g.rate_in),
    _Metric("messages_out_per_second", "Messages read per second", lambda g: _known(g, g.rate_out)),
    _Metric(
        "lost_messages", "Messages deleted before the group read them", lambda g: _known(g, g.lost)
    ),
    _Metric(
        "deletion_timestamp_seconds",
        "Time from which unread messages may be deleted",
        lambda g: _known(g, _seconds(g.risk_timestamp)),
    ),
    _Metric("unknown_queues", "Queues that are not in the sums", lambda g: g.unknown_queues),
    _Metric("retry_messages", "Messages that wait for a retry", lambda g: g.retry, by_topic=False),
    _Metric("dlq_messages", "Dead letters", lambda g: g.dlq, by_topic=False),
)


def prometheus(result: CheckResult, *, failed: bool = False) -> str:
    """Gauges in the text format 0.0.4; an unknown value has no sample. ``failed``: the check could
    not be made.

    ``rmqctl_group_status`` is a state set: 1 for the group's status, 0 for the others.
    """
    lines: list[str] = []
    for metric in _METRICS:
        name = f"rmqctl_group_{metric.name}"
        samples = {}
        for group in result.groups:
            value = metric.value(group)
            if value is not None:
                topic = group.topic if metric.by_topic else None
                samples[_labels(group=group.group, topic=topic)] = value
        lines += [f"# HELP {name} {metric.help}.", f"# TYPE {name} gauge"]
        lines += [f"{name}{labels} {value}" for labels, value in samples.items()]
    name = "rmqctl_group_status"
    lines += [f"# HELP {name} Status of the group: one of them is 1.", f"# TYPE {name} gauge"]
    lines += [
        f"{name}{_labels(group=group.group, topic=group.topic, status=word)} "
        f"{int(word == group.status)}"
        for group in result.groups
        for word in Health
    ]
    for name, text, value in (
        ("rmqctl_check_failed", "1 if the check could not be made.", int(failed)),
        ("rmqctl_check_code", "0 ok, 1 warning, 2 critical, 3 unknown.", result.code),
    ):
        lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value}"]
    return "".join(f"{line}\n" for line in lines)


def _labels(**labels: str | None) -> str:
    pairs = [f'{name}="{_label(value)}"' for name, value in labels.items() if value is not None]
    return "{" + ",".join(pairs) + "}"


def _label(value: str) -> str:
    """Backslash, quote and newline escaped as in the format; other control characters as text."""
    lines = (
        escape_controls(line).replace("\\", "\\\\").replace('"', '\\"')
        for line in value.split("\n")
    )
    return "\\n".join(lines)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
