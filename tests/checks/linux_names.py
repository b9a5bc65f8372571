"""Fail when a call that not every POSIX system has is named outside of its room.

The rooms: `storage/platform/` for Python, `storage/native/common/kernel.h` for C. `fsync` and
byte-range locks are in the list, too: macOS needs other ones.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("storage", "broker", "client", "analytics", "rmqctl", "pyspark_rocketmq")
ROOM = "storage/platform"
HEADER = "storage/native/common/kernel.h"
MODULES = {"os", "fcntl", "mmap", "socket", "select", "signal", "ctypes", "resource"}
NAMES = re.compile(
    r"posix_fallocate|posix_fadvise|fallocate|fdatasync|fsync|sync_file_range|syncfs"
    r"|copy_file_range|sendfile|splice|O_TMPFILE|O_PATH|O_NOATIME|O_DIRECT|memfd_create"
    r"|sched_\w+|SEEK_DATA|SEEK_HOLE|MAP_(?:POPULATE|NORESERVE|HUGETLB)"
    r"|MADV_(?!RANDOM|NORMAL|SEQUENTIAL|WILLNEED)\w+|F_(?:OFD_)?(?:GETLK|SETLKW?)|lockf"
    r"|F_(?:SET|GET)PIPE_SZ|SOCK_(?:CLOEXEC|NONBLOCK)|epoll|eventfd\w*|pidfd_\w+|getrandom"
    r"|(?:get|set|list)xattr|CDLL|prctl|mincore|mallopt|renameat2|mremap|syscall|SYS_[a-z]\w*"
)
PATHS = re.compile(r"^/(?:proc|sys|dev/shm)(?:/|$)")
MAY_NAME = re.compile(rf"{NAMES.pattern}|/(?:proc|sys|dev/shm)")
C_NAMES = re.compile(rf"\b(?:{NAMES.pattern}|pthread_setname_np|flock|__linux__)\b")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def in_python(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each such call of a module."""
    source = path.read_text("utf-8")
    if not MAY_NAME.search(source):
        return
    tree = ast.parse(source)
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in MODULES:
                if NAMES.fullmatch(name):
                    yield node.lineno, f"{module}.{name}"
            case ast.ImportFrom(module=module, names=names) if module in MODULES:
                for alias in names:
                    if NAMES.fullmatch(alias.name):
                        yield node.lineno, f"{module}.{alias.name}"
            case ast.Constant(value=str(text)) if id(node) not in texts and PATHS.match(text):
                yield node.lineno, text


def in_c(path: Path) -> Iterator[tuple[int, str]]:
    """The same of a C file."""
    text = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), path.read_text("utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        for found in C_NAMES.findall(line):
            yield number, found


def main(root: Path = ROOT) -> int:
    found = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix == ".py" and not name.startswith(f"{ROOM}/"):
                found += [
                    f"{name}:{line}: {what} belongs in {ROOM}/" for line, what in in_python(path)
                ]
            elif path.suffix in (".c", ".h") and name != HEADER:
                found += [f"{name}:{line}: {what} belongs in {HEADER}" for line, what in in_c(path)]
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
