"""Making the plan of a wish: in the reader's thread, as it reads the store."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.admin.changes import Change, JavaCheck
from rmqctl.console.faults import sentence_of
from rmqctl.console.looks.look import Source
from rmqctl.console.opened import Identity, identity_of

from .wish import Making, Wish

if TYPE_CHECKING:
    from .timeline import Timeline


class Plan(NamedTuple):
    """A plan, or why there is none."""

    wish: Wish
    made_ms: int
    """When the store was read, in epoch ms."""
    change: Change | None
    sentences: tuple[str, ...] = ()
    """Doubts and the summary."""
    refusals: tuple[str, ...] = ()
    """What forbids to carry it out."""
    picture: "Timeline | None" = None
    error: str | None = None
    """Why there is no plan."""
    store: Identity = ()
    """That of the store that was read."""
    warned: Sequence[str] = ()
    """What it has warned of since the plan was made: while it was carried out."""

    @property
    def can_be_done(self) -> bool:
        """Whether a person may be asked for the name."""
        change = self.change
        return change is not None and bool(change.plan) and change.has_effect and not self.refusals


def make_plan(source: Source, wish: Wish) -> Plan:
    """The plan of a wish. Changes nothing."""
    warned: list[str] = []
    refusals: list[str] = []
    store = identity_of(source.view.root)
    try:
        check = _java_check(source, refusals) if wish.java else lambda: None
        making = Making(
            source.broker, source.now_ms, warned.append, check, refusals.append, source.advance
        )
        change = wish.make(making)
        if wish.about is not None:
            warned += wish.about(making, change)
        picture = None if wish.picture is None else wish.picture(making, change)
    except Exception as error:  # noqa: BLE001 - the screen shows why there is no plan
        return Plan(wish, source.now_ms, None, tuple(warned), error=sentence_of(error))
    refusals += map(str, change.refusals)
    sentences = (*warned, *change.summary)
    warned.clear()
    return Plan(
        wish,
        source.now_ms,
        change,
        sentences,
        tuple(dict.fromkeys(refusals)),
        picture,
        store=store,
        warned=warned,
    )


def _java_check(source: Source, refusals: list[str]) -> JavaCheck:
    """The check of the commands, begun now. A refusal is part of the plan, and stays in force."""
    from rmqctl.admin.java_writers import refuse_beside_java
    from storage.errors import StoreInUseError

    try:
        return refuse_beside_java(source.view.root)
    except StoreInUseError as error:
        refusals.append(str(error))
        refused = error

    def check() -> None:
        raise refused

    return check
