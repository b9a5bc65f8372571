"""What a store has lost, as its view says when it is opened, for results that go elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from storage.errors import IncompleteStoreWarning


@contextmanager
def noted_losses() -> Iterator[dict[str, None]]:
    """Sentences of IncompleteStoreWarnings, in their order, instead of these warnings."""
    found: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("always", IncompleteStoreWarning)
        before = warnings.showwarning

        def note(message: Warning | str, *more: Any, **named: Any) -> None:
            if isinstance(message, IncompleteStoreWarning):
                found[str(message)] = None
            else:
                before(message, *more, **named)

        warnings.showwarning = note
        yield found
