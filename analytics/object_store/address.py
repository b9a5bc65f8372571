"""Addresses of stores in object stores and HDFS, and how they may be shown.

An address may hold credentials, before its host (``s3://KEY:SECRET@bucket``) and in its query. What
is printed or logged has neither.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import parse_qsl, quote, unquote

SCHEMES: Final = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfss",
    "hdfs": "hdfs",
    "viewfs": "viewfs",
}
"""Schemes that Spark's users write, and the scheme that pyarrow has for the same."""
_FORM: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]+)://(?:([^/?#]*)@)?([^/?#@]*)([^?#]*)(.*)", re.DOTALL
)
"""Scheme, user, host, path, and the rest."""
_HIDDEN: Final = "***"
_SHORTEST_SECRET: Final = 4


def is_address(path: str) -> bool:
    """Whether it names a folder that pyarrow reads, and no path of this machine."""
    found = _FORM.fullmatch(path)
    return found is not None and found[1].lower() in SCHEMES


def for_pyarrow(address: str) -> str:
    """The address with pyarrow's scheme, and without a slash at its end."""
    found = _FORM.fullmatch(address)
    if found is None:
        return address
    scheme, user, host, path, rest = found.groups("")
    at = "@" if found[2] is not None else ""
    return f"{SCHEMES[scheme.lower()]}://{user}{at}{host}{path.rstrip('/')}{rest}"


def shown(address: str) -> str:
    """The address as it may be printed: scheme, host and path; of Azure's also the container."""
    found = _FORM.fullmatch(address)
    if found is None:
        return address
    scheme, user, host, path, _ = found.groups("")
    container = f"{user.partition(':')[0]}@" if user and _is_of_azure(scheme) else ""
    return f"{scheme}://{container}{host}{path.rstrip('/')}"


def folder_of(address: str) -> str:
    """The path in it, for the name of a store."""
    found = _FORM.fullmatch(address)
    if found is None:
        return address
    path = unquote(found[4]).strip("/")
    return str(PurePosixPath("/", path)) if path else f"/{found[3]}"


def without_secrets(text: str, address: str) -> str:
    """A text of another program, as an error of pyarrow, without what an address hides."""
    text = text.replace(address, shown(address)).replace(for_pyarrow(address), shown(address))
    for secret in sorted(_secrets(address), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _is_of_azure(scheme: str) -> bool:
    """Whether the name before the host is that of a container."""
    return scheme.lower().startswith(("abfs", "wasb"))


def _secrets(address: str) -> set[str]:
    """The parts of an address that may be credentials, in each form in which they may appear."""
    found = _FORM.fullmatch(address)
    if found is None:
        return set()
    scheme, user, _, _, rest = found.groups("")
    parts = user.split(":")[1:] if _is_of_azure(scheme) else [user, *user.split(":")]
    query = rest.partition("#")[0].removeprefix("?")
    parts += [
        value for name, value in parse_qsl(query) if any(word in name.lower() for word in _WORDS)
    ]
    forms = {form for part in parts for form in (part, unquote(part), quote(part, safe=""))}
    return {form for form in forms if len(form) >= _SHORTEST_SECRET}


_WORDS: Final = ("key", "secret", "token", "password", "signature", "credential", "sas")
