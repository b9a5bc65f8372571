"""Which stores a report is about: folders, patterns of folders, and lists of them in YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from analytics.errors import AnalyticsError, ManifestError, NoSuchStoreError, NotAFolderError
from analytics.object_store.address import folder_of, is_address, shown

_LISTS: Final = (".yaml", ".yml")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")
"""Of a URI. A folder may have a colon in its name: ``./a:/b`` is one."""


class StoreRef(NamedTuple):
    """A store: the broker that it belongs to, and its folder (absolute) or its address."""

    broker: str
    path: str


def find_stores(named: Iterable[str], *, addresses: bool = False) -> list[StoreRef]:
    """Resolve folders, patterns (``/data/*/store``) and YAML files, in their order, each once.

    A YAML file maps names of brokers to folders, relative to the file. Elsewhere a store is named
    after its folder, or after the one above if that is called ``store``; where that is ambiguous,
    by its whole path. Opening a folder shows whether it is a store. A ``file:`` URI is its path.
    ``addresses``: those of object stores (``object_store.address``) are taken, too; they are no
    patterns.

    Raises NoSuchStoreError for a pattern without a match and a missing file, NotAFolderError for
    another URI, and ManifestError.
    """
    found: dict[str, str | None] = {}
    for text in named:
        for broker, path in _resolve(text, addresses=addresses):
            if found.get(path) is None:
                found[path] = broker
    short = [broker or short_name(folder_of(path)) for path, broker in found.items()]
    return [
        StoreRef(name if short.count(name) == 1 or broker else as_text(shown(path)), path)
        for (path, broker), name in zip(found.items(), short, strict=True)
    ]


def _resolve(text: str, *, addresses: bool) -> Iterator[tuple[str | None, str]]:
    if addresses and is_address(text):
        yield None, text
        return
    expanded = folder_path(text)
    if text.endswith(_LISTS):
        yield from _listed(Path(expanded), addresses=addresses)
        return
    if not has_magic(expanded):
        yield None, str(Path(expanded).absolute())
        return
    matching = glob(expanded)  # noqa: PTH207 - Path.glob takes no absolute pattern
    folders = sorted(path for path in matching if Path(path).is_dir())
    if not folders:
        raise NoSuchStoreError(text)
    for folder in folders:
        yield None, str(Path(folder).absolute())


def folder_path(text: str) -> str:
    """The path that a text names: ``~`` is a home, a ``file:`` URI is its path. Raises
    NotAFolderError for another scheme."""
    uri = _SCHEME.match(text)
    if uri is not None:
        return _of_uri(text, uri[1], text[uri.end() :])
    return os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises where no home is known


def _of_uri(text: str, scheme: str, rest: str) -> str:
    """The path of ``file:/a``, ``file:///a`` or ``file://localhost/a``, with ``%20`` and the like
    replaced."""
    if scheme.lower() != "file":
        raise NotAFolderError(shown(text), scheme, is_object_store=is_address(text))
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in {"", "localhost"}:
            raise NotAFolderError(text, f"{scheme}://{host}")
        rest = slash + path
    return unquote(rest)


def short_name(path: str) -> str:
    """The name of a store that no list names: its folder's, or the one's above, as text."""
    folder = Path(path)
    is_below = folder.name == "store" and folder.parent.name
    return as_text(folder.parent.name if is_below else folder.name)


def as_text(name: str) -> str:
    """A name as Unicode text, which Arrow and Spark need: U+FFFD for bytes of a folder's name that
    are no UTF-8, ``?`` for half of a surrogate pair, which JSON may have."""
    try:
        data = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = name.encode("utf-8", "replace")
    return data.decode("utf-8", "replace")


def _listed(path: Path, *, addresses: bool) -> Iterator[tuple[str, str]]:
    import yaml

    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise NoSuchStoreError(str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise AnalyticsError(f"{path} cannot be read: {error}") from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        raise ManifestError(path, line, getattr(error, "problem", None) or str(error)) from None
    except RecursionError:
        raise ManifestError(path, 1, "it is nested too deep") from None
    if not isinstance(node, yaml.MappingNode) or not node.value:
        line = 1 if node is None else _line(node)
        raise ManifestError(path, line, "this is to map names of brokers to folders")
    names: set[str] = set()
    for key, value in node.value:
        broker = _text(path, key, "the name of a broker")
        if broker in names:
            raise ManifestError(path, _line(key), f"{broker} is named twice")
        names.add(broker)
        named = _text(path, value, f"the folder of {broker}")
        if addresses and is_address(named):
            yield broker, named
        else:
            yield broker, str((path.parent / folder_path(named)).absolute())


def _text(path: Path, node: Any, what: str) -> str:
    import yaml

    if not isinstance(node, yaml.ScalarNode) or not node.value:
        raise ManifestError(path, _line(node), f"{what} is to be a text")
    text = str(node.value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ManifestError(path, _line(node), f"{what} is no Unicode text") from None
    return text


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
