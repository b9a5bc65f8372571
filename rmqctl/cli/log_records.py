"""Log records of the libraries as messages of the program."""

import copy
import logging
import re
import traceback
from typing import Any, Final

from rmqctl.output.last_line import LAST_LINE

_TEXT: Final = logging.Formatter("rmqctl: %(levelname)s %(name)s: %(message)s")
_NAMED: Final = re.compile(r"(?:(\w+)=)?%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z%])")
"""A place of a record's text, with its name: ``group=%s``."""
_PLAIN: Final = (str, int, float, bool)


class LineHandler(logging.Handler):
    """Prints records on standard error, as sentences or as JSON."""

    def __init__(self, *, tracebacks: bool, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._tracebacks = tracebacks
        self.setFormatter(_TEXT)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        if LAST_LINE.writes_json():
            LAST_LINE.print(
                record.getMessage(),
                level=record.levelname.lower(),
                logger=record.name,
                fields=self._fields(record),
            )
        else:
            LAST_LINE.print(self.format(record))

    def format(self, record: logging.LogRecord) -> str:
        """The sentence of a record; of an exception only its type and text, unless asked for."""
        error = record.exc_info[1] if record.exc_info else None
        if self._tracebacks or error is None:
            return super().format(record)
        short = copy.copy(record)  # other handlers have the traceback
        short.exc_info = short.exc_text = None
        return f"{super().format(short)}: {type(error).__name__}: {error}"

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        fields = _named_values(record)
        if record.exc_info and record.exc_info[1] is not None:
            fields |= _of_error(record.exc_info[1], trace=self._tracebacks)
        return fields


def print_failure(what: str, error: BaseException | None) -> None:
    """Print an exception that nothing has caught."""
    fields = {} if error is None else _of_error(error, trace=True)
    LAST_LINE.print(what, level="error", logger="python", fields=fields)


def _of_error(error: BaseException, *, trace: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"error": f"{type(error).__name__}: {error}"}
    if trace:
        fields["traceback"] = "".join(traceback.format_exception(error)).rstrip()
    return fields


def _named_values(record: logging.LogRecord) -> dict[str, Any]:
    """The values of ``name=%s`` in the text of a record, by name."""
    values = record.args if isinstance(record.args, tuple) else ()
    places = [found for found in _NAMED.finditer(str(record.msg)) if found[2] != "%"]
    return {
        found[1]: value if isinstance(value, _PLAIN) else str(value)
        for found, value in zip(places, values, strict=False)
        if found[1]
    }
