"""Lists of messages: a part of a topic, new ones as they come, and hits of a search."""

import shlex
from typing import Any, Final

from rmqctl.console.specs import PaneSpec
from rmqctl.output.shaping import predicate_of
from rmqctl.output.view import Format, View

from .bodies import body_of
from .looks.look import Place
from .looks.messages import ALL, KEPT_BYTES, LIST, range_words, window_of
from .looks.walks import KEPT, filter_words
from .panes import STOPPED, Pane
from .reading import Batch
from .tables import RowTable, shape_options

_SHOWN: Final = 400
"""Letters of a body in a list."""
_SHOWN_BYTES: Final = 16
COLUMNS: Final = (
    "queue_id",
    "queue_offset",
    "store_timestamp",
    "tags",
    "keys",
    "body_size",
    "body",
)


class MessageTable(RowTable):
    """Rows of messages; a body that is no text is shown as bytes."""

    def _texts(self, row: Any) -> list[str]:
        whole = body_of(row)
        if row.body is None and whole is not None:
            more = " ..." if len(whole) > _SHOWN_BYTES else ""
            row = row._replace(body=f"bytes {whole[:_SHOWN_BYTES].hex(' ')}{more}")
        elif row.body is not None and len(row.body) > _SHOWN:
            row = row._replace(body=row.body[:_SHOWN])
        return super()._texts(row)

    def searched(self, row: Any) -> list[str]:
        """The cells, and the whole body."""
        return [*self._texts(row), row.body or ""]


class MessageListPane(Pane):
    """A list of messages."""

    table_type = MessageTable

    def __init__(self, spec: PaneSpec, place: Place, view: View) -> None:
        super().__init__(spec, place, view)
        self._chosen = self.usual_columns()
        self.table.set_view(self.table.view._replace(columns=self._chosen))

    def usual_columns(self) -> tuple[str, ...]:
        """The columns, unless the user has named some."""
        if self._base.columns:
            return self._base.columns
        names = self.place.names
        one_queue = len(names) > 1 and names[1].isdigit()
        return COLUMNS[1:] if one_queue else COLUMNS

    def export_view(self, form: Format) -> View:
        """The view of what is shown; formats for programs have all fields."""
        view = super().export_view(form)
        if form.shows_wide_fields and self._chosen == self.usual_columns():
            view = view._replace(columns=self._base.columns)
        return view

    def command(self) -> str:
        """The command. Where the window has a part of what is there, a condition and an order would
        choose from all of that, so the command reads the window's offsets; of several queues it
        prints the window without them."""
        view, look = self.table.view, self.look
        if look is not LIST or not (view.where or view.sort) or not self._is_cut():
            return super().command()
        window = window_of(self.place)
        offsets = [row.queue_offset for row in self.table.all_rows]
        if window.queue == ALL or not offsets:
            view = view._replace(where=None, sort=())
        else:
            words = range_words(window, min(offsets), max(offsets) + 1)
            look = look._replace(words=lambda place: words)
        return look.command(self.place, *shape_options(view))

    def _is_cut(self) -> bool:
        """Whether the command of the window would choose from more messages than the list has."""
        if self.progress is None or self.progress.done >= self.progress.total:
            return False
        window = window_of(self.place)
        if self.progress.done >= window.number():
            return bool(window.start)  # those of --last are chosen first
        size: int = sum(row.body_size for row in self.table.all_rows)
        return size >= KEPT_BYTES

    def part_text(self) -> str:
        """Of what the rows are a part, if they are not whole."""
        if self.progress is None or self.loading or self.stopped or self.error is not None:
            return super().part_text()
        done, total = self.progress.done, self.progress.total
        return f"of the {total:,} there" if done < total else ""

    def walk_text(self) -> str:
        """How many there are, of which the list has some."""
        if self.progress is None or self.error is not None:
            return super().walk_text()
        done, total = self.progress.done, self.progress.total
        if done < total:
            return f" of the {total:,} there (m: more)"
        return ""


class FollowPane(MessageListPane):
    """New messages: the newest are kept, and it says how many came and how many are left out."""

    def __init__(self, spec: PaneSpec, place: Place, view: View) -> None:
        super().__init__(spec, place, view)
        self._found = 0
        """Messages that the look has handed over."""
        self._at_end = True

    def take(self, batch: Batch) -> None:
        """Add rows; the cursor stays at the end if it is there."""
        at_end = self._at_end
        super().take(batch)
        self._found = (0 if batch.first else self._found) + len(batch.rows)
        key = self.cursor_key()
        self.table.keep_last(KEPT)
        self._keep_cursor(key)
        if at_end:
            self.move_to_end(last=True)

    def move(self, by: int) -> None:
        """Move the cursor; at the end it goes on with new messages."""
        super().move(by)
        if by:
            self._at_end = self.cursor >= len(self.table.shown) - 1

    def move_to_end(self, *, last: bool) -> None:
        """Move the cursor to the first or the last row."""
        super().move_to_end(last=last)
        self._at_end = last

    def set_where(self, where: str | None) -> None:
        """Follow anew with another condition, as all messages must be looked at."""
        view = View(Format.TABLE, where=where, now_ms=self.table.view.now_ms)
        predicate_of(self.table.fields, view)
        words = [*self._words_without_where(), *(() if where is None else ("--where", where))]
        topic, queue = (*self.place.names, ALL)[:2]
        self.place = Place("follow", (topic, queue, shlex.join(words)))
        self.begin_again()

    def _words_without_where(self) -> list[str]:
        words = iter(filter_words(self.place))
        left = []
        for word in words:
            if word == "--where":
                next(words, None)
            elif not word.startswith("--where="):
                left.append(word)
        return left

    def part_text(self) -> str:
        """Of what the rows are a part."""
        if self.progress is None or self.error is not None:
            return super().part_text()
        text = f"so far, of {self.progress.total:,} that came"
        if filter_words(self.place):
            text += f", {self.progress.done:,} looked at, {self._found:,} match"
        return text + (", stopped" if self.stopped else "")

    def count_text(self) -> str:
        """What came, what was looked at, what is kept, and what is left out."""
        if self.progress is None or self.error is not None:
            return super().count_text()
        looked, came, _, left_out = self.progress
        kept = self.table.total
        text = f"{came:,} came"
        if gone := self._found - kept + left_out:
            text += f", {gone:,} left out"
        if kept < self._found or not filter_words(self.place):
            text += f", {kept:,} kept"
        if filter_words(self.place):
            if waiting := came - looked - left_out:
                text += f", {waiting:,} wait"
            text += f", {looked:,} looked at, {self._found:,} match"
        if wanted := self.table.filter:
            text += f"   {len(self.table.shown):,} have {wanted.text}"
        return text + (f", {STOPPED}" if self.stopped else "")


class SearchPane(MessageListPane):
    """Hits of a search."""

    def usual_columns(self) -> tuple[str, ...]:
        """The columns, with the topic."""
        return ("topic", *COLUMNS)

    def part_text(self) -> str:
        """Of what the hits are a part, if they are not all."""
        return Pane.part_text(self).replace(" read", " of the log searched")

    def walk_text(self) -> str:
        """How much of the log has been searched."""
        return Pane.walk_text(self).replace(" read", " of the log searched")
