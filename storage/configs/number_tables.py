"""Tables of numbers in JSON, as rmqctl writes them: ``{"name":{"0":5,"1":7}}``.

Files of progress and its samples have tens of thousands of numbers in lines of this form. Compiled
code makes a table of the text in one pass. A text of any other form, with a blank, an escape, a
negative number or a name that comes twice, is left to the general way, which also says what is
wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from storage import native

if TYPE_CHECKING:
    from collections.abc import Callable

    NumberTable = Callable[
        [bytes, int, Callable[[tuple[int, int | None]], Any] | None],
        tuple[dict[str, dict[int, Any]], int] | None,
    ]

number_table: Final[NumberTable] = native.form("number_table", native.nothing)
"""Read the table that begins at a byte of a text: it, and the byte after it.

Its values are whole numbers from 0 to 2**63 - 1, or None; or, with ``make``, what that makes of two
of them, ``[0,5]``, of which only the second may be None. Numbers of queues have at most nine
digits. None where the text has another form, and where nothing is compiled.
"""
