"""An object store in this process: as much of S3's protocol as reading needs, over folders.

It answers ListObjectsV2, HEAD and GET with ranges, checks no signature, and notes what was asked.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import gmtime, strftime
from typing import Final, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

KEY: Final = "AKIATESTKEY"
SECRET: Final = "tEsT/sEcReT"
BUCKET: Final = "bucket"
_PAGE: Final = 100
"""Keys of one answer to a list; S3 has 1,000."""


class Asked(NamedTuple):
    """One request: of a list the key is the prefix."""

    method: str
    key: str
    start: int = 0
    end: int = 0


class S3Server(ThreadingHTTPServer):
    """Serves one bucket: each of ``stores`` (name and folder) is a prefix."""

    daemon_threads = True

    def __init__(self, stores: dict[str, Path]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stores = stores
        self.asked: list[Asked] = []
        self.answers: dict[str, Callable[[_Handler], bool]] = {}
        """By the end of a key: what answers instead; False leaves it to the server."""
        self.connections: set[socket.socket] = set()
        self.released = threading.Event()
        """Set when it stops: answers that wait end."""

    def address(self, name: str, scheme: str = "s3", **more: str) -> str:
        """The address of a store, for pyarrow."""
        host = quote(f"127.0.0.1:{self.server_port}", safe="")
        query = {"endpoint_override": host, "scheme": "http", "region": "us-east-1", **more}
        rest = "&".join(f"{key}={value}" for key, value in query.items())
        return f"{scheme}://{KEY}:{quote(SECRET, safe='')}@{BUCKET}/{name}?{rest}"

    def ranges(self, part: str = "") -> list[tuple[int, int]]:
        """The ranges that were asked for of objects whose keys contain a text."""
        gets = [one for one in self.asked if one.method == "GET" and part in one.key]
        return [(one.start, one.end) for one in gets if one.end]

    def bytes_of(self, part: str = "") -> int:
        """How many bytes were asked for of such objects."""
        return sum(end - start for start, end in self.ranges(part))

    def counts(self) -> Counter[str]:
        """Requests by kind."""
        return Counter(one.method for one in self.asked)

    def files(self) -> Iterator[tuple[str, Path]]:
        """All keys, sorted, and their files."""
        found = {
            f"{name}/{path.relative_to(root)}": path
            for name, root in self.stores.items()
            for path in root.rglob("*")
            if path.is_file()
        }
        return iter(sorted(found.items()))

    def file(self, key: str) -> Path | None:
        """The file of a key."""
        name, _, rest = key.partition("/")
        path = self.stores.get(name, Path("/nowhere")) / rest
        return path if rest and path.is_file() else None

    def stop(self) -> None:
        """End all answers and connections, and wait for their threads."""
        self.released.set()
        self.shutdown()
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        key = unquote(url.path).removeprefix(f"/{BUCKET}").lstrip("/")
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if not key and self.command == "GET":
            self._list(query)
            return
        file = self.server.file(key)
        size = 0 if file is None else file.stat().st_size
        start, end = self._range(size)
        self.server.asked.append(Asked(self.command, key, start, end))
        for suffix, answer in list(self.server.answers.items()):
            if key.endswith(suffix) and answer(self):
                return
        if not key:
            self.send(200)
        elif file is None:
            self.send(404, _error("NoSuchKey"))
        else:
            self._send_file(file, start, end, size)

    def _range(self, size: int) -> tuple[int, int]:
        text = self.headers.get("Range", "")
        if not text.startswith("bytes="):
            return 0, size
        first, _, last = text.removeprefix("bytes=").partition("-")
        return int(first), min(size, int(last) + 1 if last else size)

    def _send_file(self, file: Path, start: int, end: int, size: int) -> None:
        info = file.stat()
        self.send_response(206 if self.headers.get("Range") else 200)
        if self.headers.get("Range"):
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("Last-Modified", formatdate(info.st_mtime, usegmt=True))
        self.send_header("ETag", f'"{info.st_ino:x}-{info.st_mtime_ns:x}"')
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if self.command == "HEAD":
            return
        with file.open("rb") as opened:
            opened.seek(start)
            while start < end:
                data = opened.read(min(1 << 20, end - start))
                self.wfile.write(data)
                start += len(data)

    def _list(self, query: dict[str, str]) -> None:
        prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
        self.server.asked.append(Asked("LIST", prefix))
        for suffix, answer in list(self.server.answers.items()):
            if suffix == "LIST" and answer(self):
                return
        delimiter = query.get("delimiter", "")
        most = min(_PAGE, int(query.get("max-keys", _PAGE)))
        found = [one for one in self.server.files() if one[0].startswith(prefix)]
        folders: set[str] = set()
        if delimiter:
            rests = [(key, key[len(prefix) :]) for key, _ in found]
            folders = {
                prefix + r.split(delimiter)[0] + delimiter for _, r in rests if delimiter in r
            }
            found = [(key, path) for key, path in found if delimiter not in key[len(prefix) :]]
        found = [one for one in found if one[0] > after]
        page, rest = found[:most], found[most:]
        encode = quote if query.get("encoding-type") == "url" else escape
        contents = "".join(
            f"<Contents><Key>{encode(key)}</Key>"
            f"<LastModified>{_time(path.stat().st_mtime)}</LastModified>"
            f"<Size>{path.stat().st_size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            for key, path in page
        )
        common = "".join(
            f"<CommonPrefixes><Prefix>{encode(one)}</Prefix></CommonPrefixes>"
            for one in sorted(folders)
        )
        last = page[-1][0] if page else ""
        token = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{BUCKET}</Name><Prefix>{encode(prefix)}</Prefix>"
            f"<KeyCount>{len(page)}</KeyCount><MaxKeys>{most}</MaxKeys>"
            f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>"
            f"{token if rest else ''}{contents}{common}</ListBucketResult>"
        )
        self.send(200, body.encode())

    def send(self, status: int, body: bytes = b"", *, claimed: int | None = None) -> None:
        """Answer; ``claimed``: with another length than the body has."""
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body) if claimed is None else claimed))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def refused(handler: _Handler) -> bool:
    """Answer that access is denied."""
    handler.send(403, _error("AccessDenied"))
    return True


def gone(handler: _Handler) -> bool:
    """Answer that there is no such object."""
    handler.send(404, _error("NoSuchKey"))
    return True


def cut(handler: _Handler) -> bool:
    """Send a part of what is claimed to a GET, and close the connection."""
    if handler.command != "GET":
        return False
    handler.send(206, b"\0" * 100, claimed=16_384)
    handler.wfile.flush()
    handler.close_connection = True
    return True


def silent(handler: _Handler) -> bool:
    """Answer nothing to a GET until ``released`` is set, then a refusal."""
    if handler.command != "GET":
        return False
    handler.server.released.wait()
    return refused(handler)


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


def _time(seconds: float) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S.000Z", gmtime(seconds))


@contextmanager
def serving(stores: dict[str, Path]) -> Iterator[S3Server]:
    """A server of some stores."""
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    server = S3Server(stores)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
