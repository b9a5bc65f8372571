"""Topics and their queues.

    list_topics     a TopicRow each
    describe        a TopicDescription each
    queues          a TopicQueueRow for each queue
    stats           size and growth: a TopicFigures each, with rows by topic, queue or hour
    log_bytes       size of the log; rest_of_log: what no topic has of it

    create          with settings; one that exists with the same settings stays
    alter           change settings
    delete          settings and queues, and on request the offsets of groups

Each of the last three gives a :class:`rmqctl.admin.changes.Change`. ``check`` and ``apply`` of
``alter`` and ``delete`` raise StoreInUseError beside a Java broker, and CliError (exit code 6) if
the settings have changed since the plan was made.
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .deletion import delete as delete
    from .facts import (
        describe as describe,
        list_topics as list_topics,
        queues as queues,
        stats as stats,
    )
    from .figures import (
        TopicFigures as TopicFigures,
        log_bytes as log_bytes,
        rest_of_log as rest_of_log,
    )
    from .settings import alter as alter, create as create

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "deletion": ("delete",),
        "facts": ("describe", "list_topics", "queues", "stats"),
        "figures": ("TopicFigures", "log_bytes", "rest_of_log"),
        "settings": ("alter", "create"),
    },
)
