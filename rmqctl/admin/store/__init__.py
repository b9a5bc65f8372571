"""Care of a store.

    info               facts: sizes, times, who has it open: a StoreInfoRow
    writers            the processes that have it open for writing; refuse_writers: Refused if any
    disk_use           bytes on the disk by topic, kind, group or day
    levers             what decides which files are deleted, and what each would free

    check              check it: a Check, whose ``run`` gives a report. finding_rows, check_row: its
                       rows. CheckPlace keeps where a check was stopped
    repair             repair what a check finds

    take_snapshot      copy it while it is in use: a SnapshotRow; check_target judges the target
    verify_snapshot    verify the checksums of a snapshot: a SnapshotRow
    restore            create a store from a snapshot
    diff               a StoreDiffRow for each difference between two stores
    carve              copy topics and groups into a new store

    clean              delete expired files
    rebuild_queues     rebuild queues from the log; rebuild_index: the key index
    recover_offsets    recover lost progress of groups
    recover_config     recover settings files that cannot be read

``repair``, ``restore``, ``carve``, ``clean`` and those below it return a
:class:`rmqctl.admin.changes.Change`. Work that takes long has ``phase``, which gets its progress
and can stop it: see rmqctl.admin.progress.
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .carving import Carve as Carve, carve as carve
    from .check_place import CheckPlace as CheckPlace
    from .check_rows import (
        check_row as check_row,
        finding_rows as finding_rows,
        info as info,
    )
    from .checking import Check as Check, check as check
    from .cleaning import Cleaning as Cleaning, clean as clean
    from .cleaning_levers import CleaningLevers as CleaningLevers, levers as levers
    from .comparison import diff as diff
    from .disk_usage import DiskUse as DiskUse, disk_use as disk_use
    from .lock_owners import refuse_writers as refuse_writers, writers as writers
    from .offset_recovery import (
        OffsetRecovery as OffsetRecovery,
        recover_offsets as recover_offsets,
    )
    from .rebuilding import (
        Rebuild as Rebuild,
        rebuild_index as rebuild_index,
        rebuild_queues as rebuild_queues,
    )
    from .repairing import Repair as Repair, repair as repair
    from .restoring import Restore as Restore, restore as restore
    from .settings_recovery import recover_config as recover_config
    from .snapshots import (
        check_target as check_target,
        take_snapshot as take_snapshot,
        verify_snapshot as verify_snapshot,
    )

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "carving": ("Carve", "carve"),
        "check_place": ("CheckPlace",),
        "check_rows": ("check_row", "finding_rows", "info"),
        "checking": ("Check", "check"),
        "cleaning": ("Cleaning", "clean"),
        "cleaning_levers": ("CleaningLevers", "levers"),
        "comparison": ("diff",),
        "disk_usage": ("DiskUse", "disk_use"),
        "lock_owners": ("refuse_writers", "writers"),
        "offset_recovery": ("OffsetRecovery", "recover_offsets"),
        "rebuilding": ("Rebuild", "rebuild_index", "rebuild_queues"),
        "repairing": ("Repair", "repair"),
        "restoring": ("Restore", "restore"),
        "settings_recovery": ("recover_config",),
        "snapshots": ("check_target", "take_snapshot", "verify_snapshot"),
    },
)
