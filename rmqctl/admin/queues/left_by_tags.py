"""The messages of some tags that a read left out, as their records cannot be read."""

from typing import TYPE_CHECKING

from storage.format.cq_unit import MAX_EXT_ADDR
from storage.read.replaced import without_message

if TYPE_CHECKING:
    from storage.read.tag_filter import TagFilter
    from storage.readonly import StoreView


def left_out(
    view: "StoreView", queue: tuple[str, int], tags: "TagFilter", passed: range, read: int
) -> int:
    """How many places of a queue have a unit of these tags, and gave no message.

    ``passed`` are the queue offsets that a read looked at, ``read`` is the number of messages that
    it gave: all whose unit's hash code is one of the tags'. Places that a repair emptied are none.
    Units that are lost have no tag, and where a unit names its hash code in another file
    (consume_queue_ext) nothing is sure: neither counts.
    """
    units = view.units(*queue, passed.start, len(passed))
    codes = [code for _, _, code in units]
    if not codes or min(codes) <= MAX_EXT_ADDR:
        return 0
    chosen = {code for code in set(codes) if tags.matches(code)}
    if sum(map(codes.count, chosen)) <= read:
        return 0
    mine = [unit for unit in units if unit[2] in chosen]
    return max(0, len(mine) - len(without_message(view, mine)) - read)
