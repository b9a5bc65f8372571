"""The rows of ``store repair``."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

from rmqctl.output.fields import OmitNull, Rank

if TYPE_CHECKING:
    from storage.tools.repair.steps import Step


class RepairRow(NamedTuple):
    """One step of a repair."""

    step: Annotated[int, "its number; steps are executed in this order"]
    action: Annotated[str, "the action, a stable name; NONE if there is none"]
    file: Annotated[str, "the file or folder, below the store's folder", Rank.KEY]
    position: Annotated[
        int | None, "position of the first byte in the file; null for the whole file"
    ]
    bytes: Annotated[int | None, "number of bytes that are written or removed"]
    why: Annotated[str, "code of the finding that it repairs", Rank.MAIN]
    what: Annotated[str, "the action, in words"]
    cost: Annotated[str, "permanent losses; empty for none", Rank.MAIN]
    lost_messages: Annotated[int | None, "messages that stay unreadable; null if unknown", Rank.KEY]
    applied: Annotated[bool | None, OmitNull("whether it was executed; null in a plan")] = None


def repair_row(number: int, step: "Step", *, applied: bool | None = None) -> RepairRow:
    """The row of a step."""
    return RepairRow(
        number,
        step.action.value,
        step.file,
        step.position,
        step.length,
        step.why,
        step.what,
        step.cost,
        step.lost,
        applied,
    )
