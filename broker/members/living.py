"""Live members of groups, read from the store's files."""

from pathlib import Path
from typing import TYPE_CHECKING

from storage.format.names import MEMBERS_FOLDER, OURS

if TYPE_CHECKING:
    from broker.members.group_table import Member


def members_by_group(root: Path, *, with_queues: bool = False) -> "dict[str, list[Member]]":
    """The live members of each group that has any; what queues they have only if asked for."""
    found: dict[str, list[Member]] = {}
    if not (root / OURS / MEMBERS_FOLDER).is_dir():
        return found
    # Most stores have no members: for those the rules of members are not loaded.
    from storage.coordination.processes import ProcessEntries

    processes = ProcessEntries(root)
    try:
        living = processes.living()
    finally:
        processes.close()
    if not living:
        return found
    from broker.members.process_info_json import groups_of, members_of

    for info in living:
        for group in sorted(groups_of(info)):
            found.setdefault(group, []).extend(members_of(info, group, with_queues=with_queues))
    return found
