"""Consumer groups, their settings and members.

    list_groups     a GroupRow each
    describe        a GroupDescription each
    clients         a GroupClientRow for each live member, which is asked for its state

    why             why a group lags: a GroupWhy

    create          with settings; one that exists with the same settings stays
    alter           change settings
    delete          settings, and on request offsets, and retry and dead letter topics

Each of the last three gives a :class:`rmqctl.admin.changes.Change`. ``check`` and ``apply`` of
``alter`` and ``delete`` raise StoreInUseError beside a Java broker, and CliError (exit code 6) if
the settings have changed since the plan was made.
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .deletion import delete as delete
    from .diagnosis import why as why
    from .facts import (
        clients as clients,
        describe as describe,
        list_groups as list_groups,
    )
    from .settings import alter as alter, create as create

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "deletion": ("delete",),
        "facts": ("clients", "describe", "list_groups"),
        "settings": ("alter", "create"),
        "diagnosis": ("why",),
    },
)
