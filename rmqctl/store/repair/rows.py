"""The rows of ``store repair``."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

from rmqctl.output.fields import OmitNull

if TYPE_CHECKING:
    from storage.tools.repair.steps import Step


class RepairRow(NamedTuple):
    """One step of a repair."""

    step: Annotated[int, "its number; steps are done in this order"]
    action: Annotated[str, "what is done; a stable name, NONE where nothing can be"]
    file: Annotated[str, "the file or folder, below the store's folder"]
    position: Annotated[int | None, "the first byte in the file; null for all of it"]
    bytes: Annotated[int | None, "how many bytes are written, or taken away"]
    why: Annotated[str, "code of the finding that this mends"]
    what: Annotated[str, "what is done, in words"]
    cost: Annotated[str, "what is lost for good; empty if nothing is"]
    lost_messages: Annotated[int | None, "messages that stay unreadable; null if nobody can tell"]
    applied: Annotated[bool | None, OmitNull("whether it was done; null in a plan")] = None


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
