"""Changes and their authors: the journal, and moves of offsets that are not in it.

    list_changes    all changes of a store: a ChangeRow for each moved queue, or for a setting
    describe        one change in full
    history         the moves of progress of groups, also those without a journal entry

Arguments of the same name are alike in all of them:

    view, broker    the files of the store, and a broker over it; read only is enough
    since           leaves out what was changed before (epoch ms)
    warn            called with sentences about doubtful facts
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .journal_rows import (
        describe as describe,
        history as history,
        list_changes as list_changes,
    )

__getattr__, __all__ = lazy_names(
    __name__, {"journal_rows": ("describe", "history", "list_changes")}
)
