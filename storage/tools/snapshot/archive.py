"""A snapshot as one file: a tar archive that ``tar`` unpacks to the same folder.

``monday.tar`` holds ``monday/manifest.json`` and then the files in the manifest's order, so one
pass verifies or restores it. Files with holes are stored without them (GNU's sparse format 1.0 in
pax headers, which GNU tar and bsdtar read). Compressed by its ending: ``.tar.gz``, ``.tgz``
(igzip), ``.tar.zst`` (needs the package zstandard).
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

from storage.errors import DamagedSnapshotError, NoSnapshotError, StoreError
from storage.files.checksum import Checksum, Tick, no_tick
from storage.files.fs import FileSystem
from storage.format.names import SNAPSHOT_MANIFEST

from .manifest import MAX_MANIFEST, Manifest, SnapshotFile, too_large
from .tar_reader import TarError, TarMember, TarReader

ENDINGS: Final = (".tar", ".tar.gz", ".tgz", ".tar.zst")
_CHUNK: Final = 1 << 20
_BLOCK: Final = 512
_GNU: Final = "GNU.sparse."


def is_archive_name(path: Path) -> bool:
    """Whether a snapshot of that name is to be one file."""
    return path.name.endswith(ENDINGS)


def check_packing(path: Path) -> None:
    """Raise StoreError if this Python lacks a package to write an archive of that name."""
    if path.name.endswith(".tar.zst"):
        _zstd(path, "name a file *.tar.gz")


def folder_name(path: Path) -> str:
    """The folder that an archive of that name unpacks to."""
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if path.name.endswith(ending):
            return path.name.removesuffix(ending) or "snapshot"
    return path.name


def write_archive(
    stage: Path, archive: Path, manifest: Manifest, fs: FileSystem, tick: Tick = no_tick
) -> None:
    """Put a staged snapshot, with its manifest written, into one file. Raises OSError."""
    top = folder_name(archive)
    with (
        _opened(archive, "wb") as out,
        tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK) as tar,
    ):
        names = [SNAPSHOT_MANIFEST, *(file.path for file in manifest.files)]
        for name in names:
            _add(tar, stage / name, f"{top}/{name}", fs, tick)


def _add(tar: tarfile.TarFile, path: Path, name: str, fs: FileSystem, tick: Tick) -> None:
    fd = fs.open(path, writable=False)
    try:
        size = fs.size(fd)
        ranges = fs.data_ranges(fd, 0, size)
        member = tarfile.TarInfo(name)
        member.mtime = os.fstat(fd).st_mtime_ns // 1_000_000_000
        member.mode = 0o644
        used = sum(end - start for start, end in ranges)
        if used == size:
            member.size = size
            tar.addfile(member, cast("Any", _Ranges(fs, fd, ranges, b"", tick)))
            return
        # The last piece of the map says the end of the file, as GNU tar writes it.
        pieces = [(start, end - start) for start, end in ranges]
        if not pieces or sum(pieces[-1]) < size:
            pieces.append((size, 0))
        text = "".join(f"{number}\n" for piece in pieces for number in piece)
        head = f"{len(pieces)}\n{text}".encode()
        head += bytes(-len(head) % _BLOCK)
        folder, _, base = name.rpartition("/")
        member.name = f"{folder}/GNUSparseFile.0/{base}"
        member.size = len(head) + used
        member.pax_headers = {
            "path": member.name,  # first: readers take the last name that they know
            f"{_GNU}major": "1",
            f"{_GNU}minor": "0",
            f"{_GNU}name": name,
            f"{_GNU}realsize": str(size),
        }
        tar.addfile(member, cast("Any", _Ranges(fs, fd, ranges, head, tick)))
    finally:
        fs.close(fd)


class _Ranges(io.RawIOBase):
    """Reads a head, and then ranges of a file in sequence."""

    def __init__(
        self,
        fs: FileSystem,
        fd: int,
        ranges: list[tuple[int, int]],
        head: bytes,
        tick: Tick,
    ) -> None:
        self._parts = _parts_of(fs, fd, ranges, head)
        self._rest = b""
        self._tick = tick

    def read(self, size: int = -1) -> bytes:
        """The next bytes, exactly as many unless it ends."""
        found = [self._rest]
        length = len(self._rest)
        while length < size and (part := next(self._parts, b"")):
            found.append(part)
            length += len(part)
        data = b"".join(found)
        self._rest = data[size:]
        self._tick(min(size, length))
        return data[:size]


def _parts_of(
    fs: FileSystem, fd: int, ranges: list[tuple[int, int]], head: bytes
) -> Iterator[bytes]:
    if head:
        yield head
    for start, end in ranges:
        for at in range(start, end, _CHUNK):
            yield fs.read(fd, min(_CHUNK, end - at), at)


class SnapshotArchive:
    """A snapshot that is one file. Implements :class:`.snapshot_source.SnapshotSource`."""

    def __init__(self, path: Path) -> None:
        """Read the manifest. Raises NoSnapshotError, DamagedSnapshotError, StoreVersionError."""
        self.path = path
        with self._members() as members:
            member = next(members, None)
            if member is None or Path(member.name).name != SNAPSHOT_MANIFEST:
                raise NoSnapshotError(path, f"it does not begin with {SNAPSHOT_MANIFEST}")
            place = path / SNAPSHOT_MANIFEST
            if member.size > MAX_MANIFEST:
                raise too_large(place, member.size)
            parts = [bytes(part) if isinstance(part, int) else part for part in member.parts()]
        self.manifest = Manifest.unpack(b"".join(parts), place)

    def files(self) -> Iterator[tuple[SnapshotFile, Iterator[bytes | int]]]:
        """All files in the manifest's order; each is read before the next one. Raises
        DamagedSnapshotError; a file that is longer than in the manifest is not read."""
        with self._members() as members:
            for _ in next(members).parts():
                pass
            for file in self.manifest.files:
                yield file, self._parts(self._member(members, file))

    def stored_bytes(self) -> int:
        """Bytes of all files, without holes; reads the archive through. Raises
        DamagedSnapshotError."""
        longest = self.manifest.longest_file
        total = 0
        with self._members() as members:
            for _ in next(members).parts():
                pass
            for file in self.manifest.files:
                member = self._member(members, file)
                total += member.stored if file.length <= longest else file.length
                for _ in member.parts():
                    pass
        return total

    def check(self, file: SnapshotFile, found: Checksum) -> None:
        """Raise DamagedSnapshotError if a file differs from the manifest."""
        from .snapshot_source import check

        check(self.path / file.path, file, found)

    def _member(self, members: Iterator[TarMember], file: SnapshotFile) -> TarMember:
        member = next(members, None)
        place = self.path / file.path
        if member is None or member.name.partition("/")[2] != file.path:
            raise DamagedSnapshotError(place, 0, "the file is missing in the archive")
        if member.size != file.length:
            reason = f"it has {member.size} bytes, the manifest says {file.length}"
            raise DamagedSnapshotError(place, min(member.size, file.length), reason)
        return member

    def _parts(self, member: TarMember) -> Iterator[bytes | int]:
        with self._damage():
            yield from member.parts()

    @contextmanager
    def _members(self) -> Iterator[Iterator[TarMember]]:
        with self._damage(), _opened(self.path, "rb") as opened:
            yield TarReader(opened).members()

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise NoSnapshotError(self.path) from None
        except (TarError, EOFError, *_packing_errors()) as error:
            raise DamagedSnapshotError(self.path, 0, f"it is no whole archive ({error})") from error


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[Any]:
    with ExitStack() as stack:
        if path.name.endswith((".gz", ".tgz")):
            from isal import igzip

            opening: Any = igzip.open
            yield stack.enter_context(opening(path, mode))
        elif path.name.endswith(".zst"):
            yield stack.enter_context(_zstd(path, "unpack it").open(path, mode))
        else:
            yield stack.enter_context(path.open(mode))


def _zstd(path: Path, instead: str) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise StoreError(
            f"{path} is compressed by zstd; install the Python package zstandard, or {instead}"
        ) from error
    return zstandard


def _packing_errors() -> list[Any]:
    from gzip import BadGzipFile

    from isal.isal_zlib import IsalError

    errors: list[Any] = [BadGzipFile, IsalError]
    with suppress(ImportError):
        import zstandard

        errors.append(zstandard.ZstdError)
    return errors
