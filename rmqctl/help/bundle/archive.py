"""The archive of a bundle: text files of a bounded size, and a manifest that says what each is."""

import io
import os
import tarfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from rmqctl.errors import CliError, Refused
from rmqctl.exit_codes import NOT_WRITABLE
from rmqctl.output.values import as_json
from storage.files.creating import create

VERSION: Final = 1
MOST_BYTES: Final = 5 << 20
"""Of all files together, before they are compressed; so the archive is smaller."""
_MOST_OF_ONE: Final = 640 << 10
_OF_THE_MANIFEST: Final = 256 << 10
_HEADER: Final = 1024
"""Bytes of a member besides its content, rounded up."""
_FOLDER: Final = "rmqctl-bundle"
_MODE: Final = 0o644


class Part(NamedTuple):
    """A file of the bundle, made when it is added."""

    name: str
    what: str
    """What it is, for the manifest."""
    lines: Callable[[], Iterable[str]]


class Bundle:
    """Files in memory, until they are written as one archive.

    A part that cannot be made is in the manifest with the reason. A part that is too long keeps its
    first lines; how many were left out is in the manifest.
    """

    def __init__(self, sentence: Callable[[str], str], *, redacted: bool) -> None:
        """``sentence`` takes names out of the text of an error."""
        self._sentence = sentence
        self._redacted = redacted
        self._files: list[tuple[str, bytes]] = []
        self._left = MOST_BYTES - _OF_THE_MANIFEST
        self.manifest: list[dict[str, Any]] = []
        """A row for each part: name, what, bytes, lines_left_out, problem."""

    def add(self, part: Part) -> None:
        """Make a part and keep it. Errors of making it are noted, and nothing is raised."""
        most = max(0, min(_MOST_OF_ONE, self._left - _HEADER))
        kept: list[bytes] = []
        size = left_out = 0
        failure: Exception | None = None
        try:
            for line in part.lines():
                data = line.encode("utf-8", "backslashreplace") + b"\n"
                if left_out or size + len(data) > most:
                    left_out += 1
                else:
                    size += len(data)
                    kept.append(data)
        except Exception as error:  # noqa: BLE001 - a damaged store is what a bundle is for
            failure = error
        self._note(part, size, left_out, failure)
        if kept:
            self._files.append((part.name, b"".join(kept)))
            self._left -= size + _HEADER

    def _note(self, part: Part, size: int, left_out: int, error: Exception | None) -> None:
        row = {"name": part.name, "what": part.what, "bytes": size, "lines_left_out": left_out}
        problem = None if error is None else f"{type(error).__name__}: {self._sentence(str(error))}"
        self.manifest.append({**row, "problem": problem})

    @property
    def cut(self) -> list[str]:
        """Names of the parts that are not whole."""
        return [row["name"] for row in self.manifest if row["lines_left_out"]]

    @property
    def missing(self) -> list[str]:
        """Names of the parts that could not be made, or not to their end."""
        return [row["name"] for row in self.manifest if row["problem"] is not None]

    def write(self, target: Path) -> int:
        """Write the archive; gives its bytes. Refused for a path that exists; CliError (5)."""
        data = self._archive()
        try:
            with os.fdopen(create(target), "wb") as file:
                try:
                    file.write(data)
                    file.flush()
                except OSError:
                    target.unlink()
                    raise
        except FileExistsError:
            raise Refused(f"{target} exists already and a bundle replaces nothing") from None
        except OSError as error:
            raise CliError(f"{target} cannot be written: {error.strerror}", NOT_WRITABLE) from error
        return len(data)

    def _archive(self) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
            for name, data in [("manifest.json", self._manifest_text()), *self._files]:
                member = tarfile.TarInfo(f"{_FOLDER}/{name}")
                member.size, member.mode, member.mtime = len(data), _MODE, int(time.time())
                archive.addfile(member, io.BytesIO(data))
        return out.getvalue()

    def _manifest_text(self) -> bytes:
        rows, total = self.manifest, 0
        for place, row in enumerate(rows):
            total += len(as_json(row)) * 2
            if total > _OF_THE_MANIFEST - _HEADER:
                rows = rows[:place]
                break
        content = {
            "version": VERSION,
            "names_replaced": self._redacted,
            "never_in_it": "bodies and properties of messages, bytes of the log",
            "files": rows,
            "files_not_named": len(self.manifest) - len(rows),
        }
        return (as_json(content, 1) + "\n").encode("utf-8", "backslashreplace")
