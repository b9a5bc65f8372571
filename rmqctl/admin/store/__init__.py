"""Care of a store.

    clean            delete expired files
    restore          create a store from a snapshot
    recover_config   recover settings files that cannot be read

Each returns a Change.
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .cleaning import Cleaning as Cleaning, clean as clean
    from .restoring import Restore as Restore, restore as restore
    from .settings_recovery import recover_config as recover_config

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "cleaning": ("Cleaning", "clean"),
        "restoring": ("Restore", "restore"),
        "settings_recovery": ("recover_config",),
    },
)
