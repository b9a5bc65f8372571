"""Care of a store.

    clean            delete expired files
    levers           what decides which files are deleted, and what each would free
    disk_use         bytes on the disk by topic, kind, group or day
    restore          create a store from a snapshot
    recover_config   recover settings files that cannot be read

Each but ``levers`` and ``disk_use`` returns a Change.
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .cleaning import Cleaning as Cleaning, clean as clean
    from .cleaning_levers import CleaningLevers as CleaningLevers, levers as levers
    from .disk_usage import DiskUse as DiskUse, disk_use as disk_use
    from .restoring import Restore as Restore, restore as restore
    from .settings_recovery import recover_config as recover_config

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "cleaning": ("Cleaning", "clean"),
        "disk_usage": ("DiskUse", "disk_use"),
        "cleaning_levers": ("CleaningLevers", "levers"),
        "restoring": ("Restore", "restore"),
        "settings_recovery": ("recover_config",),
    },
)
