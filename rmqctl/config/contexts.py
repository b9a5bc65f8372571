"""The contexts of all settings files."""

from collections.abc import Iterator

from rmqctl.cli.settings import Settings

from .rows import ContextRow


def context_rows(settings: Settings, used: str | None) -> Iterator[ContextRow]:
    """All contexts by name; where several files have one, the strongest file's settings win.

    ``used`` is the name of the context in use.
    """
    layers = settings.layers()
    for name in sorted({name for layer in layers for name in layer.contexts}):
        having = [layer for layer in layers if name in layer.contexts]
        merged = {}
        for layer in reversed(having):
            merged.update(layer.contexts[name])
        yield ContextRow(
            name, name == used, merged.get("store"), [layer.origin for layer in having], merged
        )
