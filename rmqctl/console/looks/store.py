"""Looks at the store itself: facts, disk, and what decides about deletions."""

from collections.abc import Iterable
from typing import Any, Final

from rmqctl.admin import store
from rmqctl.admin.store.check_rows import StoreInfoRow
from rmqctl.admin.store.cleaning_levers import CleaningLevers

from .look import Look, Place, Source


def _info(source: Source, place: Place) -> Iterable[Any]:
    return [store.info(source.view)]


def _levers(source: Source, place: Place) -> Iterable[Any]:
    return [store.levers(source.view, now_ms=source.now_ms)]


INFO: Final = Look("info", StoreInfoRow, _info, lambda place: ("store", "info"), ("path",))
LEVERS: Final = Look(
    "levers", CleaningLevers, _levers, lambda place: ("store", "clean", "-n"), ("delete_when",)
)
