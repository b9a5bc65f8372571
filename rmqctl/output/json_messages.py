"""Messages of the program as JSON, an object a line (``--log-format json``)."""

import time
from collections.abc import Mapping
from typing import Any

from rmqctl.output.values import as_json


def json_message(level: str, logger: str, text: str, fields: Mapping[str, Any]) -> str:
    """One line: time in UTC, level, logger, message, then the fields that are known.

    Control characters and what UTF-8 cannot encode are escaped.
    """
    head = {"time": _now(), "level": level, "logger": logger, "message": text}
    return as_json({**head, **{name: value for name, value in fields.items() if value is not None}})


def _now() -> str | None:
    """The time in ISO 8601; None for one that the interpreter cannot say."""
    try:
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    except OverflowError:
        return None
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{moment}.{nanoseconds // 1_000_000:03d}+00:00"
