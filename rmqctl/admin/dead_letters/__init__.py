"""Dead letters: the messages that groups gave up.

    list_groups         the groups that have dead letters
    DeadLetters         those of one group: messages, rows, one by id, how many are handled
    describe, grouped   one in full; counts by reason, tag, key, host, hour, age or shape
    in_group            whether a dead letter is one of those of a count
    acknowledge         mark them as handled
    remove_marks        remove such marks
    undo_acknowledge    undo the last marking
    redrive             send them again
    resume              continue an interrupted redrive
    settle_interrupted  mark what interrupted redrives sent

The five from ``acknowledge`` to ``resume`` return a Change. Arguments are those of
:mod:`rmqctl.admin.retries`; those of ``redrive`` that say how messages are sent are in ``Writing``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .dead_letters import DeadLetters as DeadLetters, list_groups as list_groups
    from .description import describe as describe
    from .grouping import grouped as grouped, in_group as in_group
    from .marks import (
        MarkChange as MarkChange,
        acknowledge as acknowledge,
        remove_marks as remove_marks,
        undo_acknowledge as undo_acknowledge,
    )
    from .redrive_change import (
        Limits as Limits,
        Redrive as Redrive,
        Writing as Writing,
        redrive as redrive,
        resume as resume,
        settle_interrupted as settle_interrupted,
    )
    from .rewrite import Rewrite as Rewrite

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "dead_letters": ("DeadLetters", "list_groups"),
        "description": ("describe",),
        "grouping": ("grouped", "in_group"),
        "marks": ("MarkChange", "acknowledge", "remove_marks", "undo_acknowledge"),
        "redrive_change": (
            *("Limits", "Redrive", "Writing", "redrive", "resume", "settle_interrupted"),
        ),
        "rewrite": ("Rewrite",),
    },
)
